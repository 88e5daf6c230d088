"""nanobot's keys and ours."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.errors import InvalidKey
from gateway.domain.keys import SessionKey
from gateway.domain.origins import Origin
from gateway.store.nanobot.keys import key_origin, nanobot_key, session_key

PAIRS = [
    ("telegram:42", SessionKey("telegram", "42")),
    ("telegram:-1001:topic:7", SessionKey("telegram", "-1001", "7")),
    ("telegram:a_b", SessionKey("telegram", "a_b")),
    ("slack:C1", SessionKey("slack", "C1")),
    ("slack:C1:1764504000.000100", SessionKey("slack", "C1", "1764504000.000100")),
    ("cli:direct", SessionKey("console", "local")),
    ("cli:work", SessionKey("console", "work")),
    ("api:default", SessionKey("api", "default")),
    ("unified:default", SessionKey("unified", "default")),
    ("cron:8f2", SessionKey("cron", "8f2")),
    ("heartbeat", SessionKey("nanobot", "heartbeat")),
    ("websocket:9c", SessionKey("websocket", "9c")),
    ("system:slack:C1", SessionKey("system", "slack", "C1")),
    ("dream:2026-07-01:a:b", SessionKey("dream", "2026-07-01", "a:b")),
    ("matrix:!room%3Aserver", SessionKey("matrix", "!room:server")),
    ("email:Ünï@x.org", SessionKey("email", "Ünï@x.org")),
]
parts = st.text(st.characters(categories=["L", "N", "P", "S"], exclude_characters="%"), min_size=1)


@pytest.mark.parametrize(("theirs", "ours"), PAIRS)
def test_a_key_is_read_and_written_back(theirs: str, ours: SessionKey) -> None:
    assert session_key(theirs) == ours
    assert nanobot_key(ours) == theirs


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("Slack Acme:C1", SessionKey("slack-acme", "C1")),
        ("cli:local", SessionKey("console", "local")),
        ("telegram:1:7", SessionKey("telegram", "1", "7")),
        (":odd", SessionKey("nanobot", "odd")),
        ("電報:1", SessionKey("nanobot", "1")),
    ],
)
def test_other_spellings_are_read(theirs: str, ours: SessionKey) -> None:
    assert session_key(theirs) == ours


@pytest.mark.parametrize("key", ["", "slack:", "slack:C1:", "slack::T", "slack:C\n1", "a\x00b", "x:\u202e"])
def test_a_key_without_parts_or_with_what_cannot_be_seen_is_refused(key: str) -> None:
    with pytest.raises(InvalidKey):
        session_key(key)


def test_channels_are_renamed_both_ways() -> None:
    ours = session_key("slack:C1:T", {"slack": "slack-acme", "cli": "terminal"})
    assert ours == SessionKey("slack-acme", "C1", "T")
    assert nanobot_key(ours, {"slack-acme": "slack"}) == "slack:C1:T"
    assert session_key("cli:direct", {"cli": "terminal"}) == SessionKey("terminal", "local")
    assert nanobot_key(SessionKey("terminal", "local"), {"terminal": "cli"}) == "cli:direct"


def test_a_topic_of_a_renamed_telegram_is_read_and_written_back() -> None:
    ours = session_key("telegram:-1:topic:7", {"telegram": "telegram-work"})
    assert ours == SessionKey("telegram-work", "-1", "7")
    assert nanobot_key(ours, {"telegram-work": "telegram"}) == "telegram:-1:topic:7"


@given(st.sampled_from(["slack", "telegram", "console", "api", "nanobot", "slack-acme"]), parts, st.none() | parts)
def test_our_keys_come_back(channel: str, chat_id: str, thread: str | None) -> None:
    key = SessionKey(channel, chat_id, thread)
    if (channel, chat_id, thread) != ("console", "direct", None):
        assert session_key(nanobot_key(key)) == key


@given(st.text())
def test_no_key_raises_anything_else(key: str) -> None:
    with contextlib.suppress(InvalidKey):
        session_key(key)
    key_origin(key)


def test_a_chat_is_an_origin_and_what_belongs_to_none_has_none() -> None:
    assert key_origin("slack:C1:17.1") == Origin(kind="slack", chat_id="C1", thread="17.1")
    assert key_origin("telegram:-1:topic:7") == Origin(kind="telegram", chat_id="-1", thread="7")
    assert [key_origin(key) for key in ("heartbeat", "unified:default", "slack:", "")] == [None] * 4
