"""How each update of Telegram is read, and that none can stop the reading."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.telegram.events import Dropped, Reason, callback_id, read
from gateway.domain.errors import Refused
from gateway.domain.inbound import Inbound, InboundKind
from gateway.domain.keys import Route
from gateway.domain.message import MediaRef, Sender
from gateway.domain.origins import Origin
from tests.channels.telegram.raw import GROUP, JANE, ME, NOW, PRIVATE, SENT, entity, in_group, message, taken, update


def test_a_private_message_is_read_whole() -> None:
    assert taken(update(message=message(text="hello"))) == Inbound(
        kind=InboundKind.MESSAGE,
        route=Route("tg", "42"),
        dedupe_key="upd:7:42:5",
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


def test_an_edit_names_its_message_and_has_an_event_of_its_own() -> None:
    inbound = taken(update(edited_message=message(text="better", edit_date=SENT + 60)))
    assert (inbound.kind, inbound.target) == (InboundKind.EDIT, "5")
    assert inbound.dedupe_key == f"upd:7:42:5:{SENT + 60}"
    assert inbound.sent_at == datetime.fromtimestamp(SENT + 60, UTC)


def test_a_repeat_of_an_update_is_the_same_event_and_the_same_number_elsewhere_is_another() -> None:
    """Case E2: Telegram may start its numbers anywhere after a quiet week, so the number alone is no name."""
    first = update(message=message(text="a"))
    others = [
        update(message=message(text="b", message_id=6)),
        update(message=message(GROUP, text="c")),
        update(edited_message=message(text="d", edit_date=SENT + 1)),
        update(edited_message=message(text="e", edit_date=SENT + 2)),
        {**first, "update_id": 8},
    ]
    assert taken(first).dedupe_key == taken(first).dedupe_key
    assert len({taken(raw).dedupe_key for raw in [first, *others]}) == 6


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


JSON: st.SearchStrategy[Any] = st.deferred(
    lambda: (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text(max_size=8)
        | st.lists(JSON, max_size=3)
        | st.dictionaries(st.text(max_size=6), JSON, max_size=3)
    )
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
