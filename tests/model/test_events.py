"""The pieces of a streamed text: a character whose halves come apart is joined again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.text import whole
from gateway.model.events import Joiner


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=()))))
def test_a_stream_joined_says_what_the_whole_text_says(pieces: list[str]) -> None:
    joiner = Joiner()
    assert "".join([*(joiner.add(piece) for piece in pieces), joiner.end()]) == whole("".join(pieces))


def test_a_half_character_waits_for_the_other_half_and_no_longer_than_the_text() -> None:
    joiner = Joiner()
    assert [joiner.add(piece) for piece in ("a\ud83d", "\ude00", "\ud83d")] == ["a", "\N{GRINNING FACE}", ""]
    assert joiner.end() == "\ufffd"
