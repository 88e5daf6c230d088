"""What every store promises of its search."""

from __future__ import annotations

import asyncio
import re
import tempfile
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.errors import Refused
from gateway.domain.keys import SessionKey
from gateway.domain.message import Mark, Message, Role
from gateway.domain.titles import TitleSource
from gateway.ports.sessions import NewSession
from gateway.store import Store
from tests.clock import ManualClock
from tests.stores import ENGINES, open_engine

UNSPACED = "漢字仮名かながカナー々𠀀ﾅ한국어를กินข้าวที่ພາສາខ្មែរမြန်မာ"
PIECES = st.one_of(
    st.text(UNSPACED, min_size=1, max_size=5),
    st.sampled_from(["deploy", "Deployed", "Größe", "café", "cafe\u0301", "NAÏVE", "x1", "42", "и", "हिन्दी", "αΣ"]),
    st.sampled_from([" ", " ", " ", "、", "。", "😀", "👩‍👩‍👧", "❤️", "1️⃣", "-", "_", "\n", "\u200b", "葛\U000e0100"]),
    st.sampled_from(['"', "'", "*", " AND ", " OR ", " NOT ", "NEAR(", ")", "content:", "^", "+", "{", "}", ",", "\\"]),
)
TEXTS = st.lists(PIECES, min_size=1, max_size=8).map("".join)
IS_UNSPACED = re.compile(f"[{UNSPACED}葛]")


def words_of(text: str) -> list[str]:
    """Return what is found in a text: words without case and accents, and each unspaced character by itself."""
    apart = IS_UNSPACED.sub(lambda found: f" {found[0]} ", re.sub("[\ufe0f\U000e0100\u0300-\u036f]", "", text))
    return "".join(map(plain, apart)).split()


def plain(character: str) -> str:
    if IS_UNSPACED.match(character):
        return character
    if unicodedata.category(character) not in ("Ll", "Lu", "Lo", "Nd", "Mn", "Mc"):
        return " "
    return unicodedata.normalize("NFD", character)[0].lower()


def holds(text: str, query: str) -> bool:
    """Tell whether a text holds every word of a query."""
    return all(has_run(words_of(text), word) for word in query.split() if words_of(word))


def has_run(words: Sequence[str], asked: str) -> bool:
    """Tell whether the words hold what is asked for, in a row; before an asterisk the last need only begin so."""
    run = words_of(asked)
    is_open = asked.endswith("*") and bool(words_of(re.sub("[\ufe0f\U000e0100\u0300-\u036f]", "", asked[:-1])[-1:]))
    for start in range(len(words) - len(run) + 1):
        *same, last = words[start : start + len(run)]
        if same == run[:-1] and (last.startswith(run[-1]) if is_open else last == run[-1]):
            return True
    return False


async def filled(store: Store, *texts: str, chat: str = "D1") -> str:
    """Return the id of a session that holds a row for each text."""
    session = await store.sessions.open(SessionKey("slack", chat), NewSession())
    await store.sessions.append(session.id, [Message(role=Role.USER, content=text) for text in texts])
    return session.id


async def find(store: Store, words: str) -> list[tuple[str, int | None]]:
    return [(found.session.id, found.seq) for found in await store.sessions.search(words, limit=1000)]


async def test_titles_come_first_then_rows_that_hold_all_the_words_best_first(store: Store) -> None:
    id = await filled(store, "the Quick brown fox", "the quick quick dog", "100% sure_thing", "Größe Café Ünder")
    other = await filled(store, "nothing", chat="D2")
    await store.sessions.set_title(other, "All about the quick fox", TitleSource.EDITED)
    assert await find(store, "quick THE") == [(other, None), (id, 2), (id, 1)]
    assert await find(store, "fox brown") == [(id, 1)]
    assert await find(store, "cafe under") == [(id, 4)]
    await store.sessions.mark(id, [1], Mark.DELETED)
    assert await find(store, "brown") == []
    await store.sessions.delete(other)
    assert await find(store, "quick the") == [(id, 2)]


@pytest.mark.parametrize(
    "words", ["zebra OR brown", "bro", "content:brown", "NEAR(zebra brown)", "brown NOT fox", "bro**", "*rown", "^bro"]
)
async def test_nothing_in_a_word_is_syntax(store: Store, words: str) -> None:
    await filled(store, "the quick brown fox")
    assert await find(store, words) == []


@pytest.mark.parametrize("nothing", ["  ", '"', "!?", "*", "😀", "。", "\u0301", "❤️ *", "-*"])
async def test_a_text_without_a_word_is_refused(store: Store, nothing: str) -> None:
    with pytest.raises(Refused):
        await store.sessions.search(nothing)


async def test_an_asterisk_at_the_end_finds_what_begins_so(store: Store) -> None:
    id = await filled(store, "we deploy", "Déployment of it", "redeploy", "the pre-deploys")
    other = await filled(store, "x", chat="D2")
    await store.sessions.set_title(other, "Deploying", TitleSource.EDITED)
    assert await find(store, "deploy") == [(id, 1)]
    assert set(await find(store, "deploy*")) == {(other, None), (id, 1), (id, 2), (id, 4)}
    assert await find(store, "PRE-dep* the*") == [(id, 4)]
    assert await find(store, "deploym* o* of") == [(id, 2)]


@pytest.mark.parametrize(
    ("text", "parts", "others"),
    [
        (
            "今日は東京タワーへ行きました。",
            ["東京", "京", "タワー", "東京タワーへ行き", "は東京 行き"],
            ["京東", "行東京"],
        ),
        ("我们明天部署v2到生产环境", ["部署", "部署v2", "v2", "v2到生产", "环境 明天"], ["署部", "v", "v2生"]),
        ("서울에서 만나요", ["서울", "울에서", "만나", "에서만"], ["서나"]),
        ("ฉันกินข้าวที่บ้าน", ["กิน", "ข้าว", "กินข้าวที่"], ["กัน", "ขาว"]),
        ("ຂ້ອຍກິນເຂົ້າ", ["ກິນ"], ["ກນ"]),
        ("ខ្ញុំញ៉ាំបាយ", ["បាយ"], ["បយ"]),
        ("ကျွန်တော်ထမင်းစား", ["ထမင်း"], ["ထမငး"]),
    ],
)
async def test_any_part_of_a_text_without_spaces_is_found_in_rows_and_titles(
    store: Store, text: str, parts: list[str], others: list[str]
) -> None:
    id = await filled(store, text)
    other = await filled(store, "x", chat="D2")
    await store.sessions.set_title(other, text, TitleSource.EDITED)
    for part in parts:
        assert await find(store, part) == [(other, None), (id, 1)]
        assert [found.snippet for found in await store.sessions.search(part)] == [text, text]
    for part in others:
        assert await find(store, part) == []
    await store.sessions.set_title(other, "別", TitleSource.EDITED)
    assert await find(store, parts[0]) == [(id, 1)]
    assert await find(store, "別") == [(other, None)]


async def test_a_session_with_a_first_line_title_only_is_found_as_that_line(store: Store) -> None:
    id = await filled(store, "東京へ行く")
    assert (await store.sessions.get(id)).title == "東京へ行く"
    assert await find(store, "東京") == [(id, 1)]


async def test_the_words_around_the_match_are_shown_as_they_were_written(store: Store) -> None:
    await filled(store, "so " * 500 + "in the Cafe\u0301 東京駅\n前 we met " + "so " * 500)
    for words in ("café", "京駅", "CAF*", "we met"):
        (found,) = await store.sessions.search(words)
        assert "in the Cafe\u0301 東京駅 前 we met" in found.snippet
        assert found.snippet.startswith("…")
        assert found.snippet.endswith("…")


@pytest.mark.parametrize("engine", ENGINES)
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_search_finds_what_holds_its_words_and_nothing_else(engine: str, data: st.DataObject) -> None:
    texts = data.draw(st.lists(TEXTS, min_size=1, max_size=6))
    parts = st.sampled_from(texts).flatmap(
        lambda text: st.tuples(st.integers(0, len(text)), st.integers(1, 12)).map(
            lambda cut: text[cut[0] : cut[0] + cut[1]]
        )
    )
    queries = data.draw(st.lists(TEXTS | parts | parts.map(lambda part: part + "*"), min_size=1, max_size=8))
    queries += [word for text in texts for word in re.findall(f"[{UNSPACED}]+", text)]
    retired = data.draw(st.sets(st.integers(1, len(texts))))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_compare(engine, Path(folder), texts, queries, retired))


async def _compare(engine: str, folder: Path, texts: list[str], queries: list[str], retired: set[int]) -> None:
    async with open_engine(engine, folder, ManualClock()) as store:
        id = await filled(store, *texts)
        live = dict(enumerate(texts, start=1))
        await _compare_all(store, id, live, queries)
        await store.sessions.retire(id, list(retired), "test")
        await _compare_all(store, id, {seq: text for seq, text in live.items() if seq not in retired}, queries)
        await store.sessions.clear(id)
        await _compare_all(store, id, {}, queries)


async def _compare_all(store: Store, id: str, live: dict[int, str], queries: list[str]) -> None:
    for query in queries:
        if words_of(query):
            assert set(await find(store, query)) == {(id, seq) for seq, text in live.items() if holds(text, query)}
        else:
            with pytest.raises(Refused):
                await store.sessions.search(query)
