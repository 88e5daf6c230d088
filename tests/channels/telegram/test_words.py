"""Whom a text addresses and what it says, by its entities and never by a search in it."""

from __future__ import annotations

import pytest

from gateway.domain.inbound import InboundKind
from tests.channels.telegram.raw import GROUP, JANE, SENT, entity, in_group, message, taken, update


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


def test_entities_beyond_the_text_do_no_harm() -> None:
    wild = [{"type": kind, "offset": 900, "length": 5} for kind in ("mention", "bot_command")]
    assert in_group("short", *wild).text == "short"
    assert in_group("👍", {"type": "mention", "offset": 1, "length": 1}).text == "👍"
