"""What people are shown of a bot's words, finished or while they come, and what a model is shown of its own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.compaction.state import CompactionState, block
from gateway.domain.decoration import announced, decorated, label_of
from gateway.domain.message import Attachment, Kind, MediaRef, Message, Role, Sender
from gateway.domain.sanitize import LONGEST_LINE
from gateway.domain.scrub import Stream, for_model, for_people, words_of

REPORT = (
    "[Subagent 'Phase1' failed]\n\nTask: secret\nResult: not this\n\n"
    "Result:\ngh is missing.\n\nSummarize this naturally for the user."
)


def streamed(text: str, *sizes: int) -> list[str]:
    """Return what is shown of a text that comes in chunks of these sizes, the last one over and over."""
    stream, shown, at, turn = Stream(), [], 0, 0
    while at < len(text):
        size = sizes[min(turn, len(sizes) - 1)]
        shown.append(stream.feed(text[at : at + size]))
        at, turn = at + size, turn + 1
    return [*shown, stream.end()]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>a</think>b", "b"),
        ("x\n<think>a\n\nb</think> y", "x\n y"),
        ("<think>a</think> <think>b</think>\n<thought>c</thought>d", "d"),
        ("a<think>b</thinking>c", "a<think>b</thinking>c"),
        ("</think> x </think>", "x"),
        ("  <think>never closed", ""),
        ("[Message Time: x] <think>never closed", ""),
        ("use <th>", "use <th>"),
        ("use <th", "use <th"),
        ("if a <c", "if a <c"),
        ("a < b", "a < b"),
        ("<THINK>a</THINK>b", "<THINK>a</THINK>b"),
        ("<thinking/>x", "x"),
        ("<thought/>x", "<thought/>x"),
        ("<channel>b", "b"),
        ("A <channel> b", "A <channel> b"),
        ("write `<think>` and `</think>` around it", "write `<think>` and `</think>` around it"),
        ("write `<think>…</think>` around it", "write `<think>…</think>` around it"),
        ("<think>is `</think>` meant?</think>Yes", "Yes"),
        ("<think>```\ncode\n```</think>Yes", "Yes"),
        ("```\n<think>a</think>\n```\n<think>b</think>x", "```\n<think>a</think>\n```\nx"),
        ("[Subagent 'x' completed]\n<think>a</think>\nIt is done.", "It is done."),
    ],
)
def test_thinking_is_taken_out_of_finished_text(text: str, left: str) -> None:
    assert for_people(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "`a <think> b </think> c`",
        "``a ` <think> b </think> c``",
        "The tags are <think> and </think>.",
        "| begins | ends |\n|---|---|\n| <think> | </think> |",
        "- <think> begins it, </think> ends it",
        "it is `code`<think>a</think>.",
        "<th<think>a</think>ink>b</think>c",
    ],
)
def test_thinking_tags_after_words_on_a_line_are_words(text: str) -> None:
    for shown in (text, f"before\n{text}\nafter"):
        assert for_people(shown) == shown


@pytest.mark.parametrize("scrub", [for_people, for_model])
@pytest.mark.parametrize(
    "text",
    [
        "> ```html\n> <think>a</think>\n> [image: /srv/a.png]\n> ```",
        "> ```\n> </think>",
        "so:\n  > > <think>a</think>",
        'so:\n\n    message("hi")\n\n    <think>a</think>\n    [image: /srv/a.png]\n\nthen',
        "so:\n\n\tmessage(1)\n\t</think>",
        "so:\r\n\r\n    message(1)\r\nthen",
    ],
)
def test_a_quotation_and_indented_code_stay(scrub: Callable[[str], str], text: str) -> None:
    assert scrub(text) == text


@pytest.mark.parametrize("scrub", [for_people, for_model])
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("so:\n    message(1)\nthen", "so:\nthen"),
        ("so:\n\n   message(1)\nthen", "so:\n\nthen"),
        ("    message(1)\nthen", "then"),
        ("so:\n\n    code\ntext\n    message(1)", "so:\n\n    code\ntext"),
        ("> so:\n[image: /srv/a.png]\nthen", "> so:\nthen"),
    ],
)
def test_spaces_alone_do_not_make_code(scrub: Callable[[str], str], text: str, left: str) -> None:
    assert scrub(text) == left


def test_thinking_within_thinking_ends_with_its_own_tag() -> None:
    assert for_people("<think>a<think>b</think>c</think>d") == "d"
    assert for_people("<think>a<think>b<think></think>c</think>d</think>e</think>f") == "e</think>f"
    assert for_people("<think>is `<think>` meant?</think>Yes</think>") == "Yes"


@pytest.mark.parametrize("answer", ["the answer", "the answer " * 2_000, "one\n<think>b</think>two"])
def test_an_answer_after_thinking_that_only_names_its_tag_is_shown(answer: str) -> None:
    text = f"<think>they ask for the tag <think></think>{answer}"
    assert for_people(text) == for_people(answer) != ""
    shown = accumulate(len(piece) for piece in streamed(text, 7))
    assert max(7 * turn - length for turn, length in enumerate(shown, 1)) <= 20 + LONGEST_LINE + len(text) - len(answer)


OURS = [
    "[image: /srv/data/cat.png]",
    "[image: ~/cat.png]",
    "[audio: C:\\Users\\ann\\note.ogg]",
    "[Image: the cat at /srv/data/cat.png]",
    "[image: cat.png · 3\N{MULTIPLICATION SIGN}4 · 12 kB · ref m_0a1b]",
    "[document: report.pdf · not kept, cannot be viewed]",
    "[from: Ann · U1]",
    "[from: U024BE7LH]",
    "[announcement: Phase1 · failed]",
    "[compacted: the earlier part of this conversation, summed up]",
    "[context: Monday 2026-11-30 18:38 UTC · #general · T1]",
    "[context: a picture cannot be viewed here]",
    "[CLI App Attachment: @git; tool=run_cli_app; entry_point=unknown]",
    "[Message Time: 2026-11-30 12:00]",
    "[… 1234 characters left out …]",
    'message("hi")',
    'message(content="hi (there)", to=["a"])',
    "generate_image(a cat)",
    "  [image: /srv/a.png]  \r",
    "</think>[image: /srv/a.png]",
    "[Subagent 'x' completed successfully]",
]
THEIRS = [
    "[image: a cat]",
    "[image: cat.png]",
    "[image: either / or]",
    "[from: Berlin]",
    "[context]",
    "[/context]",
    "[context: the person is in a hurry]",
    "[announcement: we moved]",
    "[compacted: three files]",
    "[x] done",
    "- [ ] message(1)",
    "[1]: http://example.org/a",
    "[image: /a](http://example.org)",
    "[a link](/srv/a.png)",
    "see [image: /srv/a.png]",
    "\\[image: /srv/a.png]",
    "message(s) for you (two)",
    "the message(1) call",
    "[Subagent] is a word",
    "> [from: Ann · U1]",
]


@pytest.mark.parametrize("line", OURS)
@pytest.mark.parametrize("scrub", [for_people, for_model])
def test_a_line_that_is_only_ours_is_removed_outside_code_only(scrub: Callable[[str], str], line: str) -> None:
    if line.startswith("[Subagent") and scrub is for_model:
        return
    assert scrub(f"before\n{line}\nafter") == "before\nafter"
    assert scrub(f"{line}\nafter") == "after"
    assert scrub(f"before\n{line}") == "before"
    for fenced in (f"a\n```py\n{line}\n```\nb", f"1. a\n    ~~~~\n{line}\n~~~\n    ~~~~\nb", f"a\n- ```\n{line}\nb"):
        assert scrub(fenced) == fenced


@pytest.mark.parametrize("line", THEIRS)
@pytest.mark.parametrize("scrub", [for_people, for_model])
def test_a_line_of_anybody_elses_stays(scrub: Callable[[str], str], line: str) -> None:
    assert scrub(f"before\n{line}\nafter") == f"before\n{line}\nafter"
    assert scrub(line) == line


def test_a_section_that_is_called_context_stays() -> None:
    for text in ("[context]\nname = a\n[/context]", "[core]\na = 1\n[context]\nb = 2"):
        assert for_people(text) == for_model(text) == text


def test_every_line_that_is_written_for_the_model_is_known_here() -> None:
    row = Message(
        role=Role.USER,
        content="words",
        sender=Sender(id="U1", name="Ann", shared=True),
        media=(MediaRef(ref="m_1", kind="image", name="a.png", width=3, height=4), MediaRef(ref="", kind="voice")),
        attachments=(Attachment(kind="CLI App", name="git", details={"tool": "x"}),),
    )
    assert for_people(str(decorated(row).content)) == "words"
    assert for_people(label_of(MediaRef(ref="m_1", kind="image", size_bytes=3))) == ""
    fields = {"announcement": {"label": "L", "status": "failed", "task": "secret", "result": "words"}}
    told = announced(Message(role=Role.USER, kind=Kind.ANNOUNCEMENT, content="", extra=fields))
    assert for_people(told) == "words"
    assert for_people(block(CompactionState(summary_text="words"), len).text) == "words"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (REPORT, "gh is missing."),
        (REPORT.replace("\n", "\r\n"), "gh is missing."),
        (f"Here it is:\n\n{REPORT}", "Here it is:\n\ngh is missing."),
        ("[Subagent 'x' completed]\n\nIt is done.", "It is done."),
        ("[Subagent 'x' completed]\nTask: secret", ""),
        ("[Subagent 'x' completed]", ""),
        ("[Subagent 'x' completed]\nTas", "Tas"),
        ("[Subagent 'x' failed]\nResult:\n<think>a</think>[image: /a]\nno luck", "no luck"),
        ("[Subagent 'x' failed]\nResult:\n```\n<think>a</think>\n```", "```\n<think>a</think>\n```"),
        ("Result: inline", "Result: inline"),
        ("x\nresult: inline value", "x\nresult: inline value"),
        (f"```\n{REPORT}\n```", f"```\n{REPORT}\n```"),
    ],
)
def test_scaffolding_of_an_announcement_is_not_shown(text: str, left: str) -> None:
    assert for_people(text) == left
    assert "".join(streamed(text, 1)) == left


def test_a_row_is_shown_by_who_speaks_in_it() -> None:
    text = "<think>a</think>b\n[image: /srv/a.png]"
    assert words_of(Message(role=Role.ASSISTANT, content=text)) == "b"
    assert words_of(Message(role=Role.USER, content=text)) == text
    old = Message(role=Role.USER, kind=Kind.ANNOUNCEMENT, content=REPORT)
    assert words_of(old) == "[Subagent 'Phase1' failed]\n\ngh is missing."
    fields = {"announcement": {"label": "L", "status": "failed", "task": "secret", "result": f"Result:\n{text}"}}
    new = Message(role=Role.USER, kind=Kind.ANNOUNCEMENT, content="whatever", extra=fields)
    assert words_of(new) == "[Subagent 'L' failed]\n\nResult:\nb"


PIECES = [
    *OURS, *THEIRS, REPORT, "<think>", "</think>", "<thinking>", "</thinking>", "<thought>", "</thought>",
    "<thinking/>", "<channel>", "<|channel|>", "<th", "</thi", "ink>", "nk>", "<", ">",
    "`", "``", "```", "````", "~~~", "```py\n", "\n", "\n", "\n\n", "\r\n", " ", "    ", "\n\n    ", "\t",
    "\xa0", "\u2028",
    "- ", "1. ", "> ", "a", "words", "Grüße", "\U0001f468\u200d\U0001f469", "e\u0301", "\x00",
    "[", "]", "[image", ": /a", "ref m_1", " · ", "message(", ")", "[Message Time: x]", "[Subagent 'x' failed]",
    "Task:", "task: a\n", "Result:", "\n\nResult:\n", "Summarize this naturally", "\\", "[context", "'", "=",
]  # fmt: skip
texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=10).map("\n".join),
    st.text(alphabet="<>/thinkoug`~\n[]:(). 1-", max_size=60),
    st.text(max_size=60),
)
many = settings(max_examples=400, deadline=None)


@many
@given(texts, st.lists(st.integers(1, 12), min_size=1, max_size=20))
def test_a_stream_shows_what_the_finished_text_is_shown_as(text: str, sizes: list[int]) -> None:
    whole = for_people(text)
    for shown in (streamed(text, *sizes), streamed(text, 1)):
        assert "".join(shown) == whole
        # Nothing is ever taken back, so no marker and no thinking was to be seen at any moment.
        assert all(whole.startswith("".join(shown[:count])) for count in range(len(shown)))


@many
@given(texts)
def test_scrubbing_twice_is_scrubbing_once(text: str) -> None:
    for scrub in (for_people, for_model):
        once = scrub(text)
        assert scrub(once) == once
        assert once == once.strip()


@many
@given(st.lists(st.sampled_from(["words", "it is", "42", "é", "(a)", "\n", " ", "- ", "# ", "*b*", "["]), max_size=30))
def test_words_without_a_trace_of_ours_stay_as_they_are(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert for_people(text) == for_model(text) == text.strip()


def test_a_line_that_cannot_become_ours_is_shown_before_it_ends() -> None:
    for line, held in [("It is a fine day, is it not?", 0), ("message me [image: /a]", 8), ("[x] bought the milk", 3)]:
        shown = streamed(line, 1)
        for count in range(held + 1, len(line)):
            assert "".join(shown[:count]).rstrip() == line[:count].rstrip()


@pytest.mark.parametrize(
    "unit", ["word ", "[", "[a:", "[image: ", "message(", "<th", "`", "a < b ", "```\n<think>\n```\n"]
)
def test_what_is_held_back_has_a_bound(unit: str) -> None:
    text = unit * (20_000 // len(unit))
    stream = Stream()
    shown = 0
    for at, character in enumerate(text, 1):
        shown += len(stream.feed(character))
        assert at - shown <= 4_300


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<think>",
        "</think>",
        "<think>a</think>",
        "[image: /a]\n",
        "[Subagent 'a' b]\n",
        " ",
        "\n",
        "`",
        "- ",
        "word ",
        "<think><think></think>",
        "\n\n    message(1)",
        "> ",
    ],
)
def test_a_long_text_of_one_shape_is_read_to_its_end(unit: str) -> None:
    """A shape whose cost grew with its square would run into the suite's own time limit; the bench measures it."""
    text = unit * (60_000 // len(unit))
    assert "".join(streamed(text, 3)) == for_people(text)
    for_model(text)
