"""Half characters: joined where both halves are there, replaced where one is alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.model.surrogates import Joiner, whole

ANY = st.text(alphabet=st.characters(exclude_categories=()))


def test_halves_are_joined_or_replaced() -> None:
    assert whole("a\ud83d\ude00b") == "a\N{GRINNING FACE}b"
    assert whole("\ud83d") == "\ufffd"
    assert whole("\ude00\ud83d") == "\ufffd\ufffd"
    assert whole("é\N{GRINNING FACE}") == "é\N{GRINNING FACE}"


@given(ANY)
def test_any_text_can_be_sent_afterwards(text: str) -> None:
    whole(text).encode()
    assert whole(whole(text)) == whole(text)


@given(st.lists(ANY))
def test_a_stream_joined_says_what_the_whole_text_says(pieces: list[str]) -> None:
    joiner = Joiner()
    assert "".join([*(joiner.add(piece) for piece in pieces), joiner.end()]) == whole("".join(pieces))
