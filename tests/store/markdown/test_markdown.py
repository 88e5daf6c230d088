"""A session for people to read: who said what, and nobody made to say what they did not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gateway.domain.keys import SessionKey
from gateway.domain.message import Attachment, Kind, Mark, MediaRef, Message, Role, Sender, ToolCall
from gateway.domain.origins import Origin
from gateway.domain.session import Session
from gateway.ports.sessions import Retired, SessionCopy
from gateway.store.markdown.writer import lines
from tests.store.strategies import copies, unhurried

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HEADER = Session(
    id="s1",
    key=SessionKey("slack", "C1", "17.1"),
    created_at=NOON,
    updated_at=NOON + timedelta(hours=1),
    title="Cats",
    origin=Origin(kind="slack", chat_id="C1", chat_name="general", tenant="T1"),
)
ANN = Sender(id="U1", name="Ann")
BOT = "### Bot · 2026-11-30 12:00:00 UTC"


def row(content: Any = "hi", **fields: Any) -> Message:
    return Message(**{"role": Role.USER, "content": content, "created_at": NOON, "sender": ANN, **fields})


def bot(content: Any = "hello", **fields: Any) -> Message:
    return row(content, role=Role.ASSISTANT, sender=None, **fields)


def shown(*rows: Message, session: Session = HEADER, everything: bool = False, attic: Sequence[Retired] = ()) -> str:
    return "".join(lines(SessionCopy(session=session, rows=rows, attic=attic), everything=everything))


def body(*rows: Message, everything: bool = False) -> str:
    """Return what is shown below the head of the document."""
    return shown(*rows, everything=everything).partition("UTC\n\n")[2]


def test_a_session_reads_from_the_top() -> None:
    call = ToolCall(id="c", name="look_up", arguments='{"of":"Grüße"}')
    assert shown(row(), bot("Wait.", tool_calls=(call,)), row("[1]", role=Role.TOOL, name="look_up")) == (
        "# Cats\n\n"
        "- From: #general · T1\n- Key: slack:C1:17.1\n"
        "- Begun: 2026-11-30 12:00:00 UTC\n- Last used: 2026-11-30 13:00:00 UTC\n\n"
        "### Ann (U1) · 2026-11-30 12:00:00 UTC\n\n> hi\n\n"
        f"{BOT}\n\n"
        "> Wait.\n>\n> <details><summary>Tool call: look_up</summary>\n>\n"
        '> ```json\n> {\n>   "of": "Grüße"\n> }\n> ```\n>\n> </details>\n\n'
        "### Tool (look\\_up) · 2026-11-30 12:00:00 UTC\n\n"
        "> <details><summary>Result</summary>\n>\n> ```json\n> [\n>   1\n> ]\n> ```\n>\n> </details>\n\n"
    )


def test_hidden_rows_are_left_out_unless_everything_is_asked_for() -> None:
    hidden = [
        row("undone", marks=frozenset({Mark.UNDONE})),
        row("/status", kind=Kind.COMMAND),
        bot("careful", kind=Kind.NOTICE),
    ]
    assert body(*hidden) == ""
    text = body(*hidden, everything=True)
    assert re.findall(r"hidden: (\w+)", text) == ["undone", "command", "notice"]


def test_a_file_is_shown_by_its_name_and_size_and_never_by_its_path() -> None:
    files = (
        MediaRef(ref="m_secret", kind="image", name="cat.png", size_bytes=12_345),
        MediaRef(ref="", kind="document", name="/srv/data/secret/report.pdf"),
        MediaRef(ref="", kind="audio", name="C:\\Users\\ann\\note.ogg", size_bytes=3),
        MediaRef(ref="m_x", kind="image", size_bytes=5_000_000_000),
    )
    text = body(row("see", media=files))
    assert re.findall(r"^> (\[.*)$", text, re.MULTILINE) == [
        "[image: cat.png · 12 kB]",
        "[document: report.pdf]",
        "[audio: note.ogg · 3 B]",
        "[image: 5.0 GB]",
    ]
    assert not any(word in text for word in ("secret", "srv", "Users", "m_x"))


def test_pictures_among_blocks_and_attachments_are_named() -> None:
    content = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:AAAA"}}]
    text = body(row(content, attachments=(Attachment(kind="CLI App", name="git"),)))
    assert text.endswith("> see\n>\n> [image]\n>\n> [CLI App: git]\n\n")


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (Kind.COMPACTED, "From here on, the bot knows what came before by a summary."),
        (Kind.INTERRUPTED, "The answer was interrupted here."),
    ],
)
def test_compaction_and_interruption_are_a_rule_with_a_sentence(kind: Kind, sentence: str) -> None:
    assert body(bot("internal", kind=kind)) == f"---\n\n*{sentence}*\n\n"


def test_nothing_internal_is_shown() -> None:
    task = "[Subagent 'x' failed]\n\nTask: secret task\n\nResult:\nno luck\n\nSummarize this naturally for the user"
    text = body(
        row("hi", runtime_context="secret time"),
        bot("<think>secret</think>[image: /srv/secret.png]\nHello", reasoning_content="secret"),
        row(task, kind=Kind.ANNOUNCEMENT, sender=None),
    )
    assert "secret" not in text
    assert "> Hello\n" in text
    assert "### Subagent ·" in text
    assert "> [Subagent 'x' failed]\n>\n> no luck\n" in text


def test_rows_of_the_attic_are_counted() -> None:
    text = shown(attic=[Retired(row=row("old"), reason="cleared", moved_at=NOON)])
    assert text.endswith("---\n\n*Rows that were moved to the attic and are not shown: 1.*\n")


def test_a_row_without_words_is_there_all_the_same() -> None:
    assert body(bot(None)) == f"{BOT}\n\n> *(no text)*\n\n"


def test_control_characters_are_shown_and_do_nothing() -> None:
    assert "> a\\x1b[2Jb\\x07\n" in body(row("a\x1b[2Jb\x07"))


def test_a_name_cannot_turn_the_heading_around() -> None:
    text = body(row("hi", sender=Sender(id="U1", name="\u202ennA\u2066")))
    assert text.startswith("### \\\\u202ennA\\\\u2066 (U1) · ")


def test_code_stays_as_it_is_and_other_markup_is_words() -> None:
    assert body(row("see <b>\n~~~html x\n<b>\n```\n")).endswith(
        "> see &lt;b>\n>\n> ````html\n> <b>\n> ```\n>\n> ````\n\n"
    )


def test_a_tab_opens_no_fence_that_only_a_reader_of_quotations_sees() -> None:
    text = body(row("\t~~~"), bot("\t~~~\n<h3>Bot</h3>\n```\n<b>\n```"))
    assert markup(text) == []
    assert len(headings(text)) == 2


@pytest.mark.parametrize("name", ["Bot · 2026-11-30 12:00:00 UTC", "Bot", "x\n\n### Bot", "[Bot](http://x)", "<h3>Bot"])
def test_a_name_is_not_the_bots(name: str) -> None:
    text = body(row("hi", sender=Sender(id="U6", name=name)))
    (heading,) = [line for line in text.split("\n") if line.startswith("#")]
    assert heading.endswith(" (U6) · 2026-11-30 12:00:00 UTC")
    assert heading.count(" · ") == 1
    assert headings(text) == [heading]


LINES = [
    BOT, "# x", "```", "````html", "~~~", "  ```", "    ```", "\t~~~", "- ```html", "1. ~~~", "> ```", "> # x", "- a",
    "  b", "---", "===", "<h3>Bot</h3>", "</details>", "</blockquote>", "<!--", "-->", "<script>", "<div", "<![CDATA[",
    "[image]: http://x", "`` ` ``", "``` a`b", "\\", "text", "", " ", "| a | b |", "|---|---|", "&lt;b>",
    "\u2028" + BOT,
    "\r" + BOT, "\x85" + BOT, "\v" + BOT, "<?php", "<a href='x'>", "$$", "```json", "- - ~~~", "<http://x>",
]  # fmt: skip
evil = st.lists(st.sampled_from(LINES), max_size=8).map("\n".join)
PARSER = MarkdownIt("commonmark", {"html": True}).enable("table")
OUR_HTML = re.compile(r"(<details><summary>[^<>]*</summary>|</details>)\n?")


def headings(text: str) -> list[str]:
    """Return the headings that a reader of the Markdown sees outside of any quotation, as they are written."""
    tokens = PARSER.parse(text)
    written = text.split("\n")
    return [
        written[token.map[0]]
        for token in tokens
        if token.type == "heading_open" and token.level == 0 and token.map is not None
    ]


def markup(text: str) -> list[str]:
    """Return the HTML that a reader of the Markdown sees."""
    tokens = [inner for token in PARSER.parse(text) for inner in (token, *(token.children or ()))]
    return [token.content for token in tokens if token.type.startswith("html")]


@unhurried
@given(
    st.lists(
        st.builds(row, evil, role=st.sampled_from(Role), name=evil, media=st.builds(
            lambda name: (MediaRef(ref="", kind="image", name=name),), evil
        ), tool_calls=st.builds(lambda name, data: (ToolCall(id="", name=name, arguments=data),), evil, evil)),
        max_size=3,
    ),
    evil,
)  # fmt: skip
def test_no_message_can_forge_the_heading_of_another_speaker(rows: list[Message], title: str) -> None:
    text = shown(*rows, session=replace(HEADER, title=title))
    assert len(headings(text)) == 1 + len(rows)
    assert sum(line.lstrip().startswith("#") for line in re.split(r"[\n\r\u2028\u2029\x85\v\f]", text)) == 1 + len(rows)
    for html in markup(text):
        assert OUR_HTML.fullmatch(html), html


@unhurried
@given(copies())
def test_any_session_can_be_shown(copy: SessionCopy) -> None:
    for everything in (False, True):
        text = "".join(lines(copy, everything=everything))
        assert all(character.isprintable() or ord(character) > 0x9F or character in "\n\t" for character in text)
        assert all(line.startswith((">", "# ", "- ", "### ", "---", "*")) or not line for line in text.split("\n"))
