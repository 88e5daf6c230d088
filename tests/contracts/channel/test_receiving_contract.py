"""What every channel does with what comes in, whatever the platform."""

from __future__ import annotations

import asyncio
import re

import pytest

from gateway.domain.inbound import InboundKind
from tests.contracts.channel.conftest import KEY, RIGS, Inbox, eventually, on_platforms, one_part, receiving
from tests.contracts.channel_rig import ChannelRig, PlatformRig


async def test_a_message_becomes_one_inbound_with_its_route(rig: ChannelRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        inbound = await inbox.first(await rig.say("hello there"))
        assert inbound.kind is InboundKind.MESSAGE
        assert inbound.text == "hello there"
        assert inbound.is_direct
        assert inbound.addresses_bot
        assert inbound.sender.id
        assert not inbound.sender.is_bot
        assert inbound.origin is not None
        assert inbound.origin.kind == rig.channel.kind
        assert inbound.origin.label
        assert inbound.sent_at.utcoffset() is not None
        marker = await inbox.first(await rig.say("a marker"))
        assert marker.sent_at >= inbound.sent_at
        assert inbox.texts == ["hello there", "a marker"]


async def test_the_key_of_a_direct_message_is_the_key_its_answer_goes_to(rig: ChannelRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        inbound = await inbox.first(await rig.say("hello"))
        assert inbound.key == inbound.route.key == rig.direct.key
        assert inbound.route.lane == rig.direct.lane
        assert inbound.route.channel == rig.channel.name


@on_platforms
async def test_the_key_of_a_mention_is_the_key_its_answer_goes_to(rig: PlatformRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        inbound = await inbox.first(await rig.mention("what is new"))
        assert inbound.key == rig.shared.key
        assert inbound.addresses_bot
        assert not inbound.is_direct
        assert "what is new" in inbound.text
        await rig.channel.post(inbound.route, one_part(rig, "much"), KEY, False)
        assert rig.shown(rig.shared)[-1] == "much"


@on_platforms
async def test_an_own_message_is_ignored(rig: PlatformRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        await rig.echo("I said this")
        await inbox.first(await rig.say("a marker"))
        assert inbox.texts == ["a marker"]


@on_platforms
async def test_another_bot_is_ignored(rig: PlatformRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        await rig.other_bot("let us talk for ever")
        await inbox.first(await rig.say("a marker"))
        assert not any("for ever" in text for text in inbox.texts)


@on_platforms
async def test_a_repeat_has_the_same_dedupe_key(rig: PlatformRig) -> None:
    """Case E2: a repeat is known by its key, however late it comes."""
    inbox = Inbox()
    async with receiving(rig, inbox):
        key = await rig.say("once")
        await inbox.first(key)
        await rig.repeat()
        await inbox.first(await rig.say("a marker"))
        assert {inbound.dedupe_key for inbound in inbox.taken if inbound.text == "once"} == {key}


@on_platforms
async def test_nothing_is_told_received_before_the_sink_returned(rig: PlatformRig) -> None:
    """Cases E3 and E12: the platform is told once the event is stored, not before."""
    inbox = Inbox()
    async with receiving(rig, inbox):
        await inbox.first(await rig.say("a first one"))
        await eventually(lambda: rig.told_received() > 0)
        told = rig.told_received()
        inbox.free.clear()
        await rig.say("one that takes long to store")
        await eventually(lambda: inbox.entered == 2)
        # Whatever was told before this is there by the time that a whole call has gone out and back.
        await rig.channel.post(rig.direct, one_part(rig, "hi"), KEY, False)
        assert rig.told_received() == told
        inbox.free.set()
        await eventually(lambda: rig.told_received() > told)


@on_platforms
async def test_a_sink_that_raises_leaves_the_event_to_come_again(rig: PlatformRig) -> None:
    """Case E1: an event that comes again is handled, and not taken for a repeat of one that was."""
    inbox = Inbox()
    inbox.failures = 1
    async with receiving(rig, inbox):
        key = await rig.say("do not lose me")
        await eventually(lambda: inbox.entered >= 1 and not inbox.failures)
        await rig.disconnect()
        inbound = await inbox.first(key)
        assert inbound.text == "do not lose me"
        await eventually(lambda: rig.told_received() > 0)


@on_platforms
async def test_after_a_disconnect_messages_flow_again(rig: PlatformRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        await inbox.first(await rig.say("before"))
        await rig.disconnect()
        await inbox.first(await rig.say("after"))
        await rig.disconnect()
        await inbox.first(await rig.say("after the second"))
        assert {"before", "after", "after the second"} <= set(inbox.texts)


async def test_messages_of_a_chat_reach_the_sink_in_order(rig: ChannelRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        texts = [f"number {number}" for number in range(20)]
        keys = [await rig.say(text) for text in texts]
        await inbox.first(keys[-1])
        assert list(dict.fromkeys(inbox.texts)) == texts


async def test_receiving_can_be_stopped_and_started_again(rig: ChannelRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        await inbox.first(await rig.say("first run"))
    key = await rig.say("while away")
    async with receiving(rig, inbox):
        await inbox.first(key)


async def test_health_tells_of_completed_round_trips(rig: ChannelRig) -> None:
    inbox = Inbox()
    assert not rig.channel.health().receiving
    async with receiving(rig, inbox):
        await inbox.first(await rig.say("hello"))
        await eventually(lambda: rig.channel.health().last_inbound)
        health = rig.channel.health()
        assert health.receiving
        assert health.last_alive is not None
        await rig.channel.post(rig.direct, one_part(rig, "hi"), KEY, False)
        assert rig.channel.health().last_outbound is not None
    assert not rig.channel.health().receiving


def ours(tasks: set[asyncio.Task[object]]) -> list[str]:
    """The tasks that are not the loopback server's."""
    names = [str(task.get_coro()) for task in tasks if not task.done()]
    return [name for name in names if not re.search(r"RequestHandler\.start|SlackServer|Sockets|loopback", name)]


async def test_closing_leaves_no_task(rig: ChannelRig) -> None:
    before = asyncio.all_tasks()
    inbox = Inbox()
    async with receiving(rig, inbox):
        await inbox.first(await rig.say("hello"))
        inbox.free.clear()
        await rig.say("in the middle of being stored")
        await eventually(lambda: inbox.entered == 2)
        await rig.channel.post(rig.direct, one_part(rig, "hi"), KEY, False)
    assert ours(asyncio.all_tasks() - before) == []


@pytest.mark.parametrize("text", ["words", "a < b & c > d", "👩‍👩‍👧‍👦 🇩🇪", "`code` *bold*", "größer 你好"])
async def test_a_text_comes_in_as_it_was_written(rig: ChannelRig, text: str) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        assert (await inbox.first(await rig.say(text))).text == text


@on_platforms
@pytest.mark.parametrize("text", ["two\nlines", "a < b & c > d", "👩‍👩‍👧‍👦 🇩🇪"])
async def test_a_mention_comes_in_with_all_its_words(rig: PlatformRig, text: str) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        assert text in (await inbox.first(await rig.mention(text))).text


@pytest.mark.parametrize(
    ("rig", "kind"), [(name, kind) for name, rig in RIGS.items() for kind in rig.announces], indirect=["rig"]
)
async def test_every_kind_of_event_can_come_in_and_the_next_one_still_does(rig: ChannelRig, kind: InboundKind) -> None:
    """Case N11: each adapter handles each kind of event that its platform announces."""
    inbox = Inbox()
    async with receiving(rig, inbox):
        await inbox.first(await rig.say("a first one"))
        becomes = await rig.announce(kind)
        await inbox.first(await rig.say("a marker"))
        between = [inbound.kind for inbound in inbox.taken[1:-1]]
        assert between == ([becomes] if becomes else [])
        assert rig.channel.health().receiving
