"""What Slack's events become: golden payloads, and a promise for all other payloads."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.slack.events import Dropped, Identity, read_event
from gateway.domain.inbound import Inbound, InboundKind
from gateway.domain.keys import Route, SessionKey
from gateway.domain.message import MediaRef, Sender
from gateway.domain.origins import Origin
from tests.channels.slack.conftest import calm

WHO = Identity(user_id="U0BOT", bot_id="B0BOT", team_id="T0AB")
TS = "1700000000.123456"


def payload(**event: Any) -> dict[str, Any]:
    base = {"type": "message", "user": "U1", "text": "hello", "ts": TS, "channel": "D1", "channel_type": "im"}
    return {"type": "event_callback", "team_id": "T0AB", "event": {**base, **event}}


def read(**event: Any) -> Inbound | Dropped:
    return read_event(payload(**event), WHO, "slack")


def taken(**event: Any) -> Inbound:
    inbound = read(**event)
    assert isinstance(inbound, Inbound), inbound
    return inbound


def test_a_direct_message_is_read_whole() -> None:
    profile = {"display_name": "Ana", "real_name": "Ana Maria"}
    assert taken(user_profile=profile) == Inbound(
        kind=InboundKind.MESSAGE,
        route=Route("slack", "D1", None, reply_to=TS),
        dedupe_key=f"msg:T0AB:D1:{TS}",
        sender=Sender(id="U1", name="Ana"),
        sent_at=datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC),
        text="hello",
        is_direct=True,
        addresses_bot=True,
        origin=Origin(kind="slack", label="@Ana", tenant="T0AB", chat_id="D1", actor="U1"),
    )


def test_a_post_in_a_channel_starts_the_thread_its_answer_goes_to() -> None:
    inbound = taken(channel="C0123", channel_type="channel", text="<@U0BOT> what is new?")
    assert inbound.route == Route("slack", "C0123", TS, reply_to=TS)
    assert inbound.key == SessionKey("slack", "C0123", TS)
    assert inbound.text == "what is new?"
    assert inbound.addresses_bot
    assert not inbound.is_direct
    assert inbound.origin == Origin(
        kind="slack", label="#C0123 · T0AB", tenant="T0AB", chat_id="C0123", thread=TS, actor="U1"
    )


@pytest.mark.parametrize("channel_type", ["channel", "group", "mpim", None])
def test_a_reply_in_a_thread_of_a_shared_chat_stays_in_it(channel_type: str | None) -> None:
    inbound = taken(channel="C1", channel_type=channel_type, thread_ts="1600000000.000001")
    assert inbound.route.thread == "1600000000.000001"
    assert not inbound.addresses_bot
    assert not inbound.is_direct


def test_a_direct_message_in_a_thread_stays_in_it_and_its_root_does_not_start_one() -> None:
    assert taken(thread_ts="1600000000.000001").route.thread == "1600000000.000001"
    assert taken(thread_ts=TS).route.thread is None


def test_app_mention_and_message_of_one_post_are_one_inbound() -> None:
    """Case E6."""
    words = "hi <@U0BOT>, look"
    as_message = taken(channel="C1", channel_type="channel", text=words)
    event = payload(channel="C1", type="app_mention", text=words)
    del event["event"]["channel_type"]
    assert read_event(event, WHO, "slack") == as_message
    assert as_message.text == "hi, look"


def test_the_same_post_id_in_two_teams_or_chats_is_two_posts() -> None:
    other_team = Identity(user_id="U0BOT", bot_id="B0BOT", team_id="T0CD")
    in_other_team = read_event(payload(), other_team, "slack")
    assert isinstance(in_other_team, Inbound)
    assert len({taken().dedupe_key, taken(channel="D2").dedupe_key, in_other_team.dedupe_key}) == 3


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("<@U0BOT> hello", "hello"),
        ("<@U0BOT>: hello", "hello"),
        ("<@U0BOT|trunk>, hello", "hello"),
        ("hello <@U0BOT> you", "hello you"),
        ("hello <@U0BOT>", "hello"),
        ("<@U0BOT> <@U0BOT> twice", "twice"),
        ("<@U2> and <@U3|bob>", "@U2 and @bob"),
        ("see <#C1|general> and <#C2>", "see #general and #C2"),
        ("<!channel> <!here|here> <!everyone>", "@channel @here @everyone"),
        ("<!subteam^S1|@ops> <!subteam^S2>", "@ops @S2"),
        ("<!date^1392734382^{date}|yesterday>", "yesterday"),
        ("<https://x.test/a?b=1&amp;c=2|label>", "label (https://x.test/a?b=1&c=2)"),
        ("<https://x.test|https://x.test>", "https://x.test"),
        ("<https://x.test>", "https://x.test"),
        ("<http://x.test|x.test>", "x.test"),
        ("<mailto:a@b.test|a@b.test>", "a@b.test"),
        ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("&lt;@U0BOT&gt; typed", "<@U0BOT> typed"),
        ("two\n\nlines\t and  spaces", "two\n\nlines\t and  spaces"),
        ("half \ud83d of a pair\x00", "half \ufffd of a pair\ufffd"),
    ],
)
def test_the_text_is_what_a_person_reads(raw: str, text: str) -> None:
    assert taken(text=raw).text == text


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"user": "U0BOT"}, "own"),
        ({"bot_id": "B0BOT", "user": None}, "own"),
        ({"bot_id": "B9"}, "other_bot"),
        ({"subtype": "bot_message", "bot_id": "B9", "user": None}, "other_bot"),
        ({"bot_profile": {"id": "B9"}}, "other_bot"),
        ({"user": "USLACKBOT"}, "other_bot"),
        ({"subtype": "message_changed"}, "subtype_message_changed"),
        ({"subtype": "message_deleted"}, "subtype_message_deleted"),
        ({"subtype": "channel_join"}, "subtype_channel_join"),
        ({"subtype": "something_new"}, "subtype_other"),
        ({"subtype": 7}, "subtype_other"),
        ({"hidden": True}, "hidden"),
        ({"text": ""}, "empty"),
        ({"text": "<@U0BOT>"}, "empty"),
        ({"text": None}, "empty"),
        ({"ts": "soon"}, "malformed"),
        ({"ts": None}, "malformed"),
        ({"channel": None}, "malformed"),
        ({"channel": {"id": "C1"}}, "malformed"),
        ({"user": None}, "malformed"),
        ({"thread_ts": "x"}, "malformed"),
        ({"type": "reaction_added"}, "not_a_message"),
        ({"type": None}, "malformed"),
    ],
)
def test_what_is_none_of_ours_is_dropped_with_a_reason(event: dict[str, Any], reason: str) -> None:
    assert read(**event) == Dropped(reason)


@pytest.mark.parametrize("subtype", ["file_share", "thread_broadcast", "me_message"])
def test_a_subtype_that_is_words_of_a_person_is_taken(subtype: str) -> None:
    assert taken(subtype=subtype).text == "hello"


def test_files_become_references() -> None:
    url = "https://files.slack.com/files-pri/T-F/cat.png"
    files = [
        {"id": "F1", "url_private": url, "name": "cat &amp; dog.png", "mimetype": "image/png", "size": 12},
        {"id": "F2", "url_private": url + "2", "mimetype": "application/pdf", "size": "big"},
        {"id": "F3", "mode": "tombstone"},
        "nonsense",
    ]
    inbound = taken(subtype="file_share", text="", files=files)
    assert inbound.media == (
        MediaRef(ref=url, kind="image", name="cat & dog.png", mime="image/png", size_bytes=12),
        MediaRef(ref=url + "2", kind="file", mime="application/pdf"),
    )


def test_what_was_forwarded_is_part_of_the_text() -> None:
    attachments = [{"author_name": "Bob", "text": "line one\nline two"}, {"fallback": "old"}, 3]
    assert taken(text="see", attachments=attachments).text == "see\n> Bob: line one\n> line two\n> old"


def test_the_blocks_stand_in_for_a_missing_text() -> None:
    elements = [{"type": "text", "text": "from "}, {"type": "link", "url": "x", "text": "blocks"}]
    rich = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "and a section"}}
    assert taken(text="", blocks=[rich, section]).text == "from \nblocks\nand a section"


json: st.SearchStrategy[Any] = st.deferred(
    lambda: (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(st.characters())
        | st.lists(json, max_size=4)
        | st.dictionaries(st.text(max_size=8), json, max_size=4)
    )
)
FIELDS = ["type", "user", "text", "ts", "channel", "channel_type", "thread_ts", "subtype", "files", "blocks", "bot_id"]
likely = st.sampled_from(["message", "app_mention", "D1", "C1", "im", TS, "<@U0BOT> x", "file_share", "U1"])
event = st.dictionaries(st.sampled_from([*FIELDS, "attachments", "user_profile", "hidden"]), json | likely)


@calm
@given(json | st.fixed_dictionaries({"event": json}) | st.fixed_dictionaries({"event": event}))
def test_no_payload_raises(anything: object) -> None:
    assert isinstance(read_event(anything, WHO, "slack"), Inbound | Dropped)


@calm
@given(st.dictionaries(st.sampled_from([*FIELDS[7:], "attachments", "user_profile", "channel_type"]), json))
def test_a_readable_message_with_strange_company_never_raises_and_can_be_stored(company: dict[str, Any]) -> None:
    inbound = read(**company)
    if isinstance(inbound, Inbound):
        assert str(inbound.key)
        inbound.text.encode("utf-8")
        assert "\x00" not in inbound.text


@calm
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_what_a_person_types_is_what_is_read(text: str) -> None:
    typed = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    inbound = read(text=typed)
    assert inbound == Dropped("empty") if not text.strip() else taken(text=typed).text == text.strip()
