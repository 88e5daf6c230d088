"""Session keys: one grammar, one spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.errors import InvalidKey
from gateway.domain.keys import Route, SessionKey

channels = st.text(alphabet="abcz019_-", min_size=1, max_size=12)
parts = st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable())
keys = st.builds(SessionKey, channels, parts, st.none() | parts)


@given(keys)
def test_a_key_is_read_as_it_is_written(key: SessionKey) -> None:
    assert SessionKey.parse(str(key)) == key


@given(keys, keys)
def test_two_keys_never_share_a_spelling(one: SessionKey, other: SessionKey) -> None:
    assert (str(one) == str(other)) == (one == other)


@given(st.text(max_size=40))
def test_any_text_is_one_key_or_refused(text: str) -> None:
    try:
        key = SessionKey.parse(text)
    except InvalidKey:
        return
    assert str(key) == text


@pytest.mark.parametrize(
    "text",
    [
        "", "slack", "slack:", ":C1", "slack:C1:", "Slack:C1", "sl ack:C1", "slack:C1:t:u", "slack:a%2Fb", "slack:a%3",
        "slack:a%3a", "slack:a\nb", "slack:a\x00b", "slack:100%",
    ],
)  # fmt: skip
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidKey):
        SessionKey.parse(text)


def test_keys_that_look_alike_are_different() -> None:
    spellings = ["telegram:a_b", "telegram:a%3Ab", "telegram:a:b", "telegram_a:b", "telegram:A_b"]
    assert len({SessionKey.parse(text) for text in spellings}) == len(spellings)


@given(channels, parts, st.none() | parts, st.none() | parts)
def test_the_key_of_what_comes_in_is_the_key_of_where_the_answer_goes(
    channel: str, chat: str, thread: str | None, reply_to: str | None
) -> None:
    route = Route(channel, chat, thread, reply_to)
    assert route.key == Route(channel, chat, thread).key == SessionKey(channel, chat, thread)


def test_threads_of_one_chat_share_a_lane_and_chats_do_not() -> None:
    assert Route("slack", "C1", "t1").lane == Route("slack", "C1", "t2").lane == "slack:C1"
    assert Route("slack", "C1:t").lane != Route("slack", "C1", "t").lane
