"""What every channel does, whatever the platform: one suite over rigs, each a real adapter and a loopback server."""

from __future__ import annotations

import asyncio
import importlib
import logging
import re
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

import pytest
from loguru import logger

from gateway.domain.errors import Gone, NotDone, Refused, Unknown
from gateway.domain.inbound import Inbound, InboundKind
from gateway.domain.outbound import Choice, Outbound, Part
from gateway.ports.channel import Presence
from tests.contracts.channel_rig import ChannelRig, Fault

RIGS = ("slack", "telegram")
HANG_SECONDS = 30
"""A guard against hanging: every wait ends as soon as what it waits for is there."""

KEY = "delivery-1.0"
KINDS = {
    "words": Outbound(text="just words"),
    "markup": Outbound(text="# Head\n\n**bold** _soft_ `code` [a link](https://example.test/a_(b))\n\n> said"),
    "code": Outbound(text='```python\nprint("<!channel>")\n```'),
    "table": Outbound(text="| a | b |\n|---|---|\n| 1 | |\n| x\\|y | 3 |"),
    "choices": Outbound(text="which?", choices=(Choice(id="y", label="yes"), Choice(id="n", label="no"))),
    "html": Outbound(text="List<String> a <b and c> d &amp; <!-- c -->"),
    "unclosed": Outbound(text="an open ```fence and **bold"),
    "emoji": Outbound(text="👩‍👩‍👧‍👦 🇩🇪 é"),
}


class Inbox:
    """A sink that remembers, and can be made to wait or to fail."""

    def __init__(self) -> None:
        self.taken: list[Inbound] = []
        self.entered = 0
        self.failures = 0
        self.free = asyncio.Event()
        self.free.set()

    async def __call__(self, inbound: Inbound) -> None:
        self.entered += 1
        await self.free.wait()
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the store is away")
        self.taken.append(inbound)

    def of(self, dedupe_key: str) -> list[Inbound]:
        return [inbound for inbound in self.taken if inbound.dedupe_key == dedupe_key]

    async def first(self, dedupe_key: str) -> Inbound:
        await eventually(lambda: self.of(dedupe_key))
        return self.of(dedupe_key)[0]


async def eventually(true: Callable[[], object]) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not true():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def receiving(rig: ChannelRig, inbox: Inbox) -> AsyncIterator[None]:
    """Open the channel and receive into the inbox; at the end both stop."""
    await rig.channel.open()
    task = asyncio.create_task(rig.channel.receive(inbox))
    try:
        yield
        if task.done():
            await task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await rig.channel.close()


class LogLines(logging.Handler):
    """Everything logged, by us or by a library, at any level."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logging.Formatter().format(record))


@pytest.fixture
def logs() -> Iterator[list[str]]:
    handler, root = LogLines(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    sink = logger.add(
        lambda message: handler.lines.append(str(message)),
        level=0,
        format="{message} {extra}",
        diagnose=True,
        catch=False,
    )
    yield handler.lines
    logger.remove(sink)
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture(params=RIGS)
async def rig(request: pytest.FixtureRequest, logs: list[str]) -> AsyncIterator[ChannelRig]:
    """A rig whose tokens, whatever the test did, are in no log line."""
    module = importlib.import_module(f"tests.contracts.rigs.{request.param}")
    async with module.rig() as made:
        yield made
        secrets = made.secrets()
    leaked = [line for line in logs if any(secret in line for secret in secrets)]
    assert leaked == []


@pytest.fixture
async def opened(rig: ChannelRig) -> AsyncIterator[ChannelRig]:
    """A rig whose sending half works alone; nothing is received."""
    await rig.channel.open()
    yield rig
    await rig.channel.close()


def one_part(rig: ChannelRig, text: str) -> Part:
    (part,) = rig.channel.render(Outbound(text=text))
    return part


# Receiving.


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
        assert [inbound.text for inbound in inbox.taken] == ["hello there", "a marker"]


async def test_the_key_of_a_direct_message_is_the_key_its_answer_goes_to(rig: ChannelRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        inbound = await inbox.first(await rig.say("hello"))
        assert inbound.key == inbound.route.key == rig.direct.key
        assert inbound.route.lane == rig.direct.lane
        assert inbound.route.channel == rig.channel.name


async def test_the_key_of_a_mention_is_the_key_its_answer_goes_to(rig: ChannelRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        inbound = await inbox.first(await rig.say("what is new", mention=True))
        assert inbound.key == rig.shared.key
        assert inbound.addresses_bot
        assert not inbound.is_direct
        assert "what is new" in inbound.text
        await rig.channel.post(inbound.route, one_part(rig, "much"), KEY, False)
        assert rig.shown(rig.shared)[-1] == "much"


async def test_an_own_message_is_ignored(rig: ChannelRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        await rig.echo("I said this")
        await inbox.first(await rig.say("a marker"))
        assert [inbound.text for inbound in inbox.taken] == ["a marker"]


async def test_another_bot_is_ignored(rig: ChannelRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        await rig.other_bot("let us talk for ever")
        await inbox.first(await rig.say("a marker"))
        assert not any("for ever" in inbound.text for inbound in inbox.taken)


async def test_a_repeat_has_the_same_dedupe_key(rig: ChannelRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        key = await rig.say("once")
        await inbox.first(key)
        await rig.repeat()
        await inbox.first(await rig.say("a marker"))
        assert {inbound.dedupe_key for inbound in inbox.taken if inbound.text == "once"} == {key}


async def test_nothing_is_told_received_before_the_sink_returned(rig: ChannelRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        await inbox.first(await rig.say("a first one"))
        await eventually(lambda: rig.told_received() > 0)
        told = rig.told_received()
        inbox.free.clear()
        await rig.say("one that takes long to store")
        await eventually(lambda: inbox.entered == 2)
        await asyncio.sleep(0.05)
        assert rig.told_received() == told
        inbox.free.set()
        await eventually(lambda: rig.told_received() > told)


async def test_a_sink_that_raises_leaves_the_event_to_come_again(rig: ChannelRig) -> None:
    inbox = Inbox()
    inbox.failures = 1
    async with receiving(rig, inbox):
        key = await rig.say("do not lose me")
        await eventually(lambda: inbox.entered >= 1 and not inbox.failures)
        await rig.disconnect()
        inbound = await inbox.first(key)
        assert inbound.text == "do not lose me"
        await eventually(lambda: rig.told_received() > 0)


async def test_after_a_disconnect_messages_flow_again(rig: ChannelRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        await inbox.first(await rig.say("before"))
        await rig.disconnect()
        await inbox.first(await rig.say("after"))
        await rig.disconnect()
        await inbox.first(await rig.say("after the second"))
        assert {"before", "after", "after the second"} <= {inbound.text for inbound in inbox.taken}


async def test_messages_of_a_chat_reach_the_sink_in_order(rig: ChannelRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        texts = [f"number {number}" for number in range(20)]
        keys = [await rig.say(text) for text in texts]
        await inbox.first(keys[-1])
        assert list(dict.fromkeys(inbound.text for inbound in inbox.taken)) == texts


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


# Sending.


@pytest.mark.parametrize("place", ["direct", "shared"])
async def test_what_is_posted_is_shown_in_its_chat_and_thread(opened: ChannelRig, place: str) -> None:
    route = getattr(opened, place)
    other = opened.shared if place == "direct" else opened.direct
    before = opened.shown(other)
    ref = await opened.channel.post(route, one_part(opened, "an answer"), KEY, False)
    assert ref.id
    assert opened.shown(route)[-1] == "an answer"
    assert opened.shown(other) == before


async def test_long_text_is_split_within_the_limit_and_nothing_is_lost(opened: ChannelRig) -> None:
    words = [f"word{number}" for number in range(6000)]
    paragraphs = [" ".join(words[start : start + 60]) for start in range(0, len(words), 60)]
    parts = opened.channel.render(Outbound(text="\n\n".join(paragraphs)))
    assert len(parts) > 1
    assert all(len(part.text.encode("utf-16-le")) // 2 <= opened.longest for part in parts)
    for number, part in enumerate(parts):
        await opened.channel.post(opened.direct, part, f"delivery-1.{number}", False)
    assert re.findall(r"word\d+", "\n".join(opened.shown(opened.direct))) == words


async def test_a_blank_text_has_no_parts_and_any_other_has_some(opened: ChannelRig) -> None:
    assert list(opened.channel.render(Outbound(text=" \n\t "))) == []
    for text in ("x", "[a]: http://x", "<!-- c -->", "***", "|", "\u00a0x", "`"):
        assert opened.channel.render(Outbound(text=text)), text


async def test_rendering_is_pure(opened: ChannelRig) -> None:
    outbound = KINDS["markup"]
    assert [part.hash for part in opened.channel.render(outbound)] == [
        part.hash for part in opened.channel.render(outbound)
    ]


async def test_a_rate_limit_is_told_with_its_wait(opened: ChannelRig) -> None:
    opened.fail_next(Fault.LIMITED)
    with pytest.raises(NotDone) as raised:
        await opened.channel.post(opened.direct, one_part(opened, "hi"), KEY, False)
    assert raised.value.retry_after == 7
    assert not raised.value.fatal
    assert not raised.value.formatting


async def test_a_lost_answer_is_unknown_and_can_be_looked_for_where_the_platform_can(opened: ChannelRig) -> None:
    channel, since = opened.channel, datetime.now(UTC)
    for route in (opened.direct, opened.shared):
        shown = len(opened.shown(route))
        opened.fail_next(Fault.LOST)
        with pytest.raises(Unknown):
            await channel.post(route, one_part(opened, "perhaps"), KEY, False)
        assert opened.shown(route)[shown:] == ["perhaps"]
        if not channel.capabilities.find:
            with pytest.raises(Refused):
                await channel.find(route, KEY, since, ())
            continue
        found = await channel.find(route, KEY, since, ())
        assert found is not None
        await channel.put(route, found, one_part(opened, "for sure"), None, KEY, False)
        assert opened.shown(route)[shown:] == ["for sure"]
        assert await channel.find(route, KEY, since, [found]) is None
        assert await channel.find(route, "delivery-2.0", since, ()) is None


async def test_refused_formatting_is_told_and_the_plain_form_passes(opened: ChannelRig) -> None:
    part = one_part(opened, "**so** 1 < 2 & `x`")
    opened.fail_next(Fault.BAD_FORMAT)
    with pytest.raises(NotDone) as raised:
        await opened.channel.post(opened.direct, part, KEY, False)
    assert raised.value.formatting
    assert not raised.value.fatal
    await opened.channel.post(opened.direct, part.as_plain(), KEY, False)
    assert opened.shown(opened.direct)[-1] == part.plain


async def test_being_blocked_is_fatal(opened: ChannelRig) -> None:
    opened.fail_next(Fault.BLOCKED)
    with pytest.raises(NotDone) as raised:
        await opened.channel.post(opened.direct, one_part(opened, "hi"), KEY, False)
    assert raised.value.fatal
    assert raised.value.code


async def test_an_internal_error_of_the_platform_is_unknown(opened: ChannelRig) -> None:
    opened.fail_next(Fault.BROKEN)
    with pytest.raises(Unknown):
        await opened.channel.post(opened.direct, one_part(opened, "hi"), KEY, False)


async def test_a_message_can_be_changed_where_the_platform_can(opened: ChannelRig) -> None:
    channel = opened.channel
    if not channel.capabilities.edits:
        pytest.skip("this platform cannot")
    first, second, third = (one_part(opened, text) for text in ("one", "two", "three"))
    ref = await channel.post(opened.direct, first, KEY, True)
    ref = await channel.put(opened.direct, ref, second, first, KEY, True)
    assert opened.shown(opened.direct)[-1] == "two"
    ref = await channel.put(opened.direct, ref, third, None, KEY, False)
    assert opened.shown(opened.direct)[-1] == "three"
    await channel.put(opened.direct, ref, third, None, KEY, False)
    assert opened.shown(opened.direct)[-1] == "three"


async def test_a_message_can_be_taken_away_where_the_platform_can(opened: ChannelRig) -> None:
    channel = opened.channel
    if not channel.capabilities.deletes:
        pytest.skip("this platform cannot")
    before = opened.shown(opened.direct)
    ref = await channel.post(opened.direct, one_part(opened, "away with me"), KEY, False)
    await channel.drop(opened.direct, ref)
    assert opened.shown(opened.direct) == before
    with pytest.raises(Gone):
        await channel.put(opened.direct, ref, one_part(opened, "back again"), None, KEY, False)


async def test_no_error_holds_a_token(opened: ChannelRig) -> None:
    for fault in Fault:
        opened.fail_next(fault)
        with pytest.raises((NotDone, Unknown)) as raised:
            await opened.channel.post(opened.direct, one_part(opened, "hi"), KEY, False)
        told = "".join(traceback.format_exception(raised.value))
        assert not any(secret in told for secret in opened.secrets()), fault


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["direct", "shared"])
async def test_every_kind_of_message_can_be_shown_and_changed(opened: ChannelRig, kind: str, place: str) -> None:
    channel, route = opened.channel, getattr(opened, place)
    await channel.presence(route, Presence.WORKING)
    parts = channel.render(KINDS[kind])
    assert parts
    for number, part in enumerate(parts):
        ref = await channel.post(route, part, f"{kind}.{number}", True)
        assert opened.shown(route)[-1]
        if channel.capabilities.edits:
            await channel.put(route, ref, part, None, f"{kind}.{number}", False)
    await channel.presence(route, Presence.IDLE)


async def test_every_kind_of_message_can_come_in(rig: ChannelRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        for text in ("words", "a < b & c > d", "two\nlines", "👩‍👩‍👧‍👦 🇩🇪", "`code` *bold*"):
            assert (await inbox.first(await rig.say(text))).text == text
            assert text in (await inbox.first(await rig.say(text, mention=True))).text


async def test_a_note_for_one_person_is_kept_from_the_others(rig: ChannelRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        asked = await inbox.first(await rig.say("who may know", mention=True))
        before = rig.shown(rig.shared)
        (part,) = rig.channel.render(Outbound(text="between us", only_for=asked.sender.id))
        for form in (part, part.as_plain()):
            if rig.channel.capabilities.private_notes:
                await rig.channel.post(rig.shared, form, KEY, False)
            else:
                with pytest.raises(NotDone) as refused:
                    await rig.channel.post(rig.shared, form, KEY, False)
                assert refused.value.fatal
        assert rig.shown(rig.shared) == before


async def test_the_platform_is_called_by_nobody_unless_it_says_so(opened: ChannelRig) -> None:
    assert all(route.method and route.path.startswith("/") for route in opened.channel.routes())
