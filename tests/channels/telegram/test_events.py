"""How each update of Telegram is read, and that none can stop the reading."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.telegram.events import Dropped, Reason, callback_id, read
from channels.telegram.words import Me
from gateway.domain.errors import Refused
from gateway.domain.inbound import Inbound, InboundKind
from gateway.domain.keys import Route
from gateway.domain.message import MediaRef, Sender
from gateway.domain.origins import Origin

ME = Me(id=99, username="tbot")
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SENT = 1_796_000_000
JANE = {"id": 42, "is_bot": False, "first_name": "Jane", "last_name": "Doe", "username": "jane"}
PRIVATE = {"id": 42, "type": "private", "first_name": "Jane", "last_name": "Doe", "username": "jane"}
GROUP = {"id": -100, "type": "supergroup", "title": "Team"}


def message(chat: dict[str, Any] = PRIVATE, **fields: Any) -> dict[str, Any]:
    return {"message_id": 5, "date": SENT, "chat": chat, "from": JANE, **fields}


def update(**kinds: Any) -> dict[str, Any]:
    return {"update_id": 7, **kinds}


def taken(raw: dict[str, Any]) -> Inbound:
    inbound = read(raw, "tg", ME, NOW)
    assert isinstance(inbound, Inbound)
    return inbound


def in_group(text: str, *entities: dict[str, Any], **fields: Any) -> Inbound:
    return taken(update(message=message(GROUP, text=text, entities=list(entities), **fields)))


def entity(type: str, text: str, part: str, **fields: Any) -> dict[str, Any]:
    before = text[: text.index(part)]
    return {"type": type, "offset": utf16(before), "length": utf16(part), **fields}


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def test_a_private_message_is_read_whole() -> None:
    assert taken(update(message=message(text="hello"))) == Inbound(
        kind=InboundKind.MESSAGE,
        route=Route("tg", "42"),
        dedupe_key="upd:7",
        sender=Sender(id="42", name="Jane Doe"),
        sent_at=datetime.fromtimestamp(SENT, UTC),
        text="hello",
        is_direct=True,
        addresses_bot=True,
        origin=Origin(kind="telegram", label="@jane", chat_id="42", chat_name="Jane Doe", actor="42"),
    )


def test_a_message_in_a_topic_is_answered_there_as_a_reply() -> None:
    inbound = in_group("hi", message_thread_id=3, is_topic_message=True)
    assert inbound.route == Route("tg", "-100", thread="3", reply_to="5")
    assert inbound.origin == Origin(
        kind="telegram", label="Team", chat_id="-100", chat_name="Team", thread="3", actor="42"
    )
    assert not inbound.is_direct
    assert not inbound.addresses_bot


def test_a_thread_that_is_no_topic_is_none_and_private_chats_have_none() -> None:
    assert in_group("hi", message_thread_id=3).route.thread is None
    private = message(text="hi", message_thread_id=3, is_topic_message=True)
    assert taken(update(message=private)).route == Route("tg", "42")


def test_a_person_without_a_username_is_labelled_by_name() -> None:
    chat = {"id": 42, "type": "private", "first_name": "Jane"}
    origin = taken(update(message=message(chat, text="x"))).origin
    assert origin is not None
    assert origin.label == "Jane"


@pytest.mark.parametrize(
    ("text", "mention", "spoken"),
    [
        ("@tbot hello", "@tbot", "hello"),
        ("@TBot: hello", "@TBot", "hello"),
        ("👍👍 @tbot hello", "@tbot", "👍👍 @tbot hello"),
        ("hello @tbot", "@tbot", "hello @tbot"),
        ("@tbot", "@tbot", "@tbot"),
    ],
)
def test_a_mention_addresses_the_bot_and_is_cut_off_in_front(text: str, mention: str, spoken: str) -> None:
    inbound = in_group(text, entity("mention", text, mention))
    assert inbound.addresses_bot
    assert inbound.text == spoken


@pytest.mark.parametrize(
    ("text", "type", "part"),
    [
        ("jane@tbot.com", "email", "jane@tbot.com"),
        ("@tbotter hi", "mention", "@tbotter"),
        ("@other hi", "mention", "@other"),
        ("see https://e.test/@tbot", "url", "https://e.test/@tbot"),
        ("/new@otherbot", "bot_command", "/new@otherbot"),
        ("/new", "bot_command", "/new"),
    ],
)
def test_what_is_no_mention_of_the_bot_does_not_address_it(text: str, type: str, part: str) -> None:
    inbound = in_group(text, entity(type, text, part))
    assert not inbound.addresses_bot
    assert inbound.text == text


def test_a_name_without_an_entity_is_no_mention() -> None:
    assert not in_group("@tbot hello").addresses_bot


def test_a_mention_by_name_addresses_the_bot() -> None:
    text = "Trunk help"
    mention = entity("text_mention", text, "Trunk", user={"id": 99, "is_bot": True, "first_name": "Trunk"})
    assert in_group(text, mention).addresses_bot
    assert in_group(text, mention).text == "help"
    other = entity("text_mention", text, "Trunk", user={"id": 98, "first_name": "Trunk"})
    assert not in_group(text, other).addresses_bot


def test_a_reply_to_the_bot_addresses_it_unless_it_is_a_command_for_another() -> None:
    ours = {"message_id": 1, "date": SENT, "chat": GROUP, "from": {"id": 99, "is_bot": True}}
    assert in_group("and?", reply_to_message=ours).addresses_bot
    text = "/new@otherbot"
    assert not in_group(text, entity("bot_command", text, text), reply_to_message=ours).addresses_bot
    theirs = {**ours, "from": JANE}
    assert not in_group("and?", reply_to_message=theirs).addresses_bot


@pytest.mark.parametrize(
    ("text", "command", "kept"),
    [("/new@tbot now", "/new@tbot", "/new now"), ("/new@TBOT", "/new@TBOT", "/new")],
)
def test_a_command_for_the_bot_keeps_its_words(text: str, command: str, kept: str) -> None:
    inbound = in_group(text, entity("bot_command", text, command))
    assert (inbound.kind, inbound.addresses_bot, inbound.text) == (InboundKind.COMMAND, True, kept)


def test_a_command_behind_a_mention_is_a_command() -> None:
    text = "@tbot /new now"
    inbound = in_group(text, entity("mention", text, "@tbot"), entity("bot_command", text, "/new"))
    assert (inbound.kind, inbound.addresses_bot, inbound.text) == (InboundKind.COMMAND, True, "/new now")


def test_a_bare_command_is_for_the_bot_in_a_private_chat_only() -> None:
    text = "/new now"
    bare = entity("bot_command", text, "/new")
    private = taken(update(message=message(text=text, entities=[bare])))
    assert (private.kind, private.addresses_bot, private.text) == (InboundKind.COMMAND, True, text)
    assert not in_group(text, bare).addresses_bot


def test_a_command_later_in_the_text_is_a_message() -> None:
    text = "try /new"
    inbound = taken(update(message=message(text=text, entities=[entity("bot_command", text, "/new")])))
    assert inbound.kind is InboundKind.MESSAGE


def test_an_edit_names_its_message_and_has_an_event_of_its_own() -> None:
    inbound = taken(update(edited_message=message(text="better", edit_date=SENT + 60)))
    assert (inbound.kind, inbound.target, inbound.dedupe_key) == (InboundKind.EDIT, "5", "upd:7")
    assert inbound.sent_at == datetime.fromtimestamp(SENT + 60, UTC)


def test_a_pressed_button_is_a_choice_that_can_be_acknowledged_anywhere() -> None:
    query = {"id": "q1", "from": JANE, "message": message(GROUP, text="Sure?"), "data": "yes"}
    inbound = taken(update(callback_query=query))
    assert (inbound.kind, inbound.text, inbound.target) == (InboundKind.CHOICE, "yes", "5")
    assert inbound.sent_at == NOW
    assert inbound.sender == Sender(id="42", name="Jane Doe")
    assert callback_id(inbound) == "q1"
    with pytest.raises(Refused):
        callback_id(in_group("hi"))


PHOTO = [{"file_id": "small", "file_size": 10}, {"file_id": "large", "file_size": 90}]


@pytest.mark.parametrize(
    ("fields", "media"),
    [
        (
            {"photo": PHOTO},
            MediaRef(ref="large", kind="image", name="photo.jpg", mime="image/jpeg", size_bytes=90),
        ),
        (
            {"document": {"file_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf", "file_size": 3}},
            MediaRef(ref="d", kind="file", name="a.pdf", mime="application/pdf", size_bytes=3),
        ),
        (
            {"document": {"file_id": "d", "file_name": "a.png", "mime_type": "image/png"}},
            MediaRef(ref="d", kind="image", name="a.png", mime="image/png"),
        ),
        ({"voice": {"file_id": "v", "mime_type": "audio/ogg"}}, MediaRef(ref="v", kind="audio", mime="audio/ogg")),
        ({"video_note": {"file_id": "n"}}, MediaRef(ref="n", kind="video")),
        (
            {"animation": {"file_id": "g", "mime_type": "video/mp4"}, "document": {"file_id": "g"}},
            MediaRef(ref="g", kind="video", mime="video/mp4"),
        ),
    ],
)
def test_files_come_as_references_with_their_caption(fields: dict[str, Any], media: MediaRef) -> None:
    caption = "@tbot look"
    mention = entity("mention", caption, "@tbot")
    inbound = taken(update(message=message(GROUP, caption=caption, caption_entities=[mention], **fields)))
    assert inbound.media == (media,)
    assert (inbound.text, inbound.addresses_bot) == ("look", True)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (update(message=message(text="x", **{"from": {"id": 99, "is_bot": True}})), Reason.OWN),
        (update(edited_message=message(text="x", **{"from": {"id": 99, "is_bot": True}})), Reason.OWN),
        (update(message=message(GROUP, text="@tbot", **{"from": {"id": 77, "is_bot": True}})), Reason.OTHER_BOT),
        (update(message=message(GROUP, new_chat_members=[JANE])), Reason.NO_CONTENT),
        (update(message=message(GROUP, pinned_message=message(text="x"))), Reason.NO_CONTENT),
        (update(message=message(text="x", business_connection_id="b")), Reason.BUSINESS),
        (update(business_message=message(text="x")), Reason.BUSINESS),
        (update(channel_post=message(text="x")), Reason.CHANNEL_POST),
        (update(message=message(GROUP, text="x", is_automatic_forward=True)), Reason.CHANNEL_POST),
        (update(poll={"id": "1"}), Reason.UNSUPPORTED),
        (update(callback_query={"id": "q", "from": JANE, "inline_message_id": "i"}), Reason.UNSUPPORTED),
        (update(callback_query={"id": "q", "from": {**JANE, "is_bot": True}, "message": message()}), Reason.OTHER_BOT),
        (update(message={"message_id": 5, "date": SENT, "chat": PRIVATE, "text": "x"}), Reason.UNREADABLE),
        (update(message={"new": "shape"}), Reason.UNREADABLE),
        (update(message=message(text="x", date=10**15)), Reason.UNREADABLE),
        ({"message": message(text="x")}, Reason.UNREADABLE),
        (None, Reason.UNREADABLE),
        ([1], Reason.UNREADABLE),
    ],
)
def test_what_goes_no_further_is_dropped_with_its_reason(raw: Any, reason: Reason) -> None:
    assert read(raw, "tg", ME, NOW) == Dropped(reason)


def test_who_writes_as_a_group_is_no_bot() -> None:
    anonymous = {"from": {"id": 1087968824, "is_bot": True, "first_name": "Group"}, "sender_chat": GROUP}
    assert in_group("hi", **anonymous).sender == Sender(id="-100", name="Team")


def test_half_a_surrogate_pair_is_replaced_wherever_it_is() -> None:
    half = "x\ud83d"
    person = {**JANE, "first_name": half}
    inbound = taken(update(message=message({**PRIVATE, "first_name": half}, text=half, **{"from": person})))
    assert inbound.text == "x\ufffd"
    assert inbound.sender.name == "x\ufffd Doe"
    assert inbound.origin is not None
    assert inbound.origin.chat_name == "x\ufffd Doe"


def test_entities_beyond_the_text_do_no_harm() -> None:
    wild = [{"type": kind, "offset": 900, "length": 5} for kind in ("mention", "bot_command")]
    assert in_group("short", *wild).text == "short"
    assert in_group("👍", {"type": "mention", "offset": 1, "length": 1}).text == "👍"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
ENTITIES = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["mention", "bot_command", "text_mention", "url"]),
            "offset": st.integers(0, 12),
            "length": st.integers(0, 12),
        },
        optional={"user": st.just({"id": 99}) | JSON},
    ),
    max_size=4,
)
TEXTS = st.text(st.sampled_from("@tbot /new👍 ,:\n"), max_size=12) | JSON
FIELDS = st.fixed_dictionaries(
    {"message_id": st.integers() | JSON, "date": st.integers() | JSON},
    optional={
        "chat": st.sampled_from([PRIVATE, GROUP]) | JSON,
        "from": st.just(JANE) | JSON,
        "sender_chat": st.just(GROUP) | JSON,
        "text": TEXTS,
        "caption": TEXTS,
        "entities": ENTITIES | JSON,
        "caption_entities": ENTITIES | JSON,
        "photo": st.just(PHOTO) | st.just([]) | JSON,
        "document": st.just({"file_id": "f"}) | JSON,
        "reply_to_message": JSON,
        "message_thread_id": st.integers() | JSON,
        "is_topic_message": st.booleans() | JSON,
        "edit_date": st.integers() | JSON,
    },
)
KINDS = ["message", "edited_message", "callback_query", "channel_post", "something_new"]
UPDATES = st.fixed_dictionaries(
    {"update_id": st.integers() | JSON},
    optional={kind: FIELDS | JSON for kind in KINDS},
)


@settings(max_examples=400, deadline=None)
@given(UPDATES | JSON)
def test_no_update_whatever_its_shape_stops_the_reading(raw: Any) -> None:
    assert isinstance(read(raw, "tg", ME, NOW), Inbound | Dropped)


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("@tbot /new👍 ,:\n"), min_size=1, max_size=12), ENTITIES)
def test_no_entities_stop_the_reading_of_a_good_message(text: str, entities: list[dict[str, Any]]) -> None:
    raw = update(message=message(GROUP, text=text, entities=entities))
    inbound = read(raw, "tg", ME, NOW)
    assert isinstance(inbound, Inbound | Dropped)
    if isinstance(inbound, Inbound):
        assert inbound.text
        assert str(inbound.key) == "tg:-100"
