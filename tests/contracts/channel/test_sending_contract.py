"""What every channel does with what goes out, whatever the platform."""

from __future__ import annotations

import re
import traceback
from datetime import UTC, datetime

import pytest

from gateway.domain.errors import Gone, NotDone, Refused, Unknown, Unreachable
from gateway.domain.message import MediaRef
from gateway.domain.outbound import Choice, Outbound
from gateway.ports.channel import Presence
from tests.contracts.channel.conftest import KEY, Inbox, everywhere, on_platforms, one_part, receiving, where
from tests.contracts.channel_rig import ChannelRig, Fault, PlatformRig

KINDS = {
    "words": Outbound(text="just words"),
    "markup": Outbound(text="# Head\n\n**bold** _soft_ `code` [a link](https://example.test/a_(b))\n\n> said"),
    "code": Outbound(text='```python\nprint("<!channel>")\n```'),
    "table": Outbound(text="| a | b |\n|---|---|\n| 1 | |\n| x\\|y | 3 |"),
    "choices": Outbound(text="which?", choices=(Choice(id="y", label="yes"), Choice(id="n", label="no"))),
    "media": Outbound(text="see", media=(MediaRef(ref="r", kind="image", name="cat.png"),)),
    "html": Outbound(text="List<String> a <b and c> d &amp; <!-- c -->"),
    "unclosed": Outbound(text="an open ```fence and **bold"),
    "emoji": Outbound(text="👩‍👩‍👧‍👦 🇩🇪 é"),
}


@everywhere
async def test_what_is_posted_is_shown_in_its_chat_and_thread_and_nowhere_else(opened: ChannelRig, place: str) -> None:
    route = getattr(opened, place)
    others = [getattr(opened, other) for other in opened.places if other != place]
    before = [opened.shown(other) for other in others]
    ref = await opened.channel.post(route, one_part(opened, "an answer"), KEY, False)
    assert ref.id
    assert opened.shown(route)[-1] == "an answer"
    assert [opened.shown(other) for other in others] == before


async def test_long_text_is_split_within_the_limit_and_nothing_is_lost(opened: ChannelRig) -> None:
    words = [f"word{number}" for number in range(6000)]
    text = "\n\n".join(" ".join(words[start : start + 60]) for start in range(0, len(words), 60))
    parts = opened.channel.render(Outbound(text=text))
    assert (len(parts) > 1) == (len(text) > opened.longest)
    assert all(len(part.text.encode("utf-16-le")) // 2 <= opened.longest for part in parts)
    for number, part in enumerate(parts):
        await opened.channel.post(opened.direct, part, f"delivery-1.{number}", False)
    assert re.findall(r"word\d+", "\n".join(opened.shown(opened.direct))) == words


async def test_a_blank_text_has_no_parts_and_any_other_has_some(rig: ChannelRig) -> None:
    assert list(rig.channel.render(Outbound(text=" \n\t "))) == []
    for text in ("x", "[a]: http://x", "<!-- c -->", "***", "|", "\u00a0x", "`"):
        assert rig.channel.render(Outbound(text=text)), text


@pytest.mark.parametrize("outbound", KINDS.values(), ids=KINDS)
async def test_rendering_is_pure(rig: ChannelRig, outbound: Outbound) -> None:
    first, second = rig.channel.render(outbound), rig.channel.render(outbound)
    assert [part.hash for part in first] == [part.hash for part in second]


@everywhere
@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_message_can_be_shown(opened: ChannelRig, place: str, kind: str) -> None:
    """Case N11: each adapter shows each kind of message in each of its chats, in both of its forms."""
    channel, route = opened.channel, getattr(opened, place)
    await channel.presence(route, Presence.WORKING)
    for form in ("rich", "plain"):
        for number, part in enumerate(channel.render(KINDS[kind])):
            before = len(opened.shown(route))
            await channel.post(route, part if form == "rich" else part.as_plain(), f"{kind}.{form}.{number}", True)
            assert len(opened.shown(route)) == before + 1
    await channel.presence(route, Presence.IDLE)


@where(lambda rig: rig.kind.capabilities.edits)
@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_message_can_be_changed(opened: ChannelRig, kind: str) -> None:
    """Case N11: and changes it."""
    for number, part in enumerate(opened.channel.render(KINDS[kind])):
        ref = await opened.channel.post(opened.direct, one_part(opened, "wait"), f"{kind}.{number}", True)
        await opened.channel.put(opened.direct, ref, part, None, f"{kind}.{number}", False)
        assert opened.shown(opened.direct)[-1] != "wait"


@where(lambda rig: rig.kind.capabilities.edits)
async def test_a_message_can_be_changed_more_than_once_and_to_what_it_shows_already(opened: ChannelRig) -> None:
    channel = opened.channel
    first, second, third = (one_part(opened, text) for text in ("one", "two", "three"))
    ref = await channel.post(opened.direct, first, KEY, True)
    ref = await channel.put(opened.direct, ref, second, first, KEY, True)
    assert opened.shown(opened.direct)[-1] == "two"
    ref = await channel.put(opened.direct, ref, third, None, KEY, False)
    assert opened.shown(opened.direct)[-1] == "three"
    await channel.put(opened.direct, ref, third, None, KEY, False)
    assert opened.shown(opened.direct)[-1] == "three"


@where(lambda rig: rig.kind.capabilities.deletes)
async def test_a_message_that_was_taken_away_is_gone_and_not_posted_again(opened: ChannelRig) -> None:
    channel = opened.channel
    before = opened.shown(opened.direct)
    ref = await channel.post(opened.direct, one_part(opened, "away with me"), KEY, False)
    await channel.drop(opened.direct, ref)
    assert opened.shown(opened.direct) == before
    with pytest.raises(Gone):
        await channel.put(opened.direct, ref, one_part(opened, "back again"), None, KEY, False)


@where(lambda rig: not rig.kind.capabilities.deletes)
async def test_taking_away_is_refused_for_good_where_the_platform_cannot(opened: ChannelRig) -> None:
    ref = await opened.channel.post(opened.direct, one_part(opened, "here to stay"), KEY, False)
    with pytest.raises(NotDone) as raised:
        await opened.channel.drop(opened.direct, ref)
    assert raised.value.fatal


@on_platforms
async def test_a_note_for_one_person_is_kept_from_the_others(rig: PlatformRig) -> None:
    inbox = Inbox()
    async with receiving(rig, inbox):
        asked = await inbox.first(await rig.mention("who may know"))
        before = rig.shown(rig.shared)
        (part,) = rig.channel.render(Outbound(text="between us", only_for=asked.sender.id))
        for form in (part, part.as_plain()):
            if rig.channel.capabilities.private_notes:
                await rig.channel.post(asked.route, form, KEY, False)
            else:
                with pytest.raises(NotDone) as refused:
                    await rig.channel.post(asked.route, form, KEY, False)
                assert refused.value.fatal
        assert rig.shown(rig.shared) == before


async def test_the_platform_is_called_by_nobody_unless_it_says_so(opened: ChannelRig) -> None:
    assert all(route.method and route.path.startswith("/") for route in opened.channel.routes())


# What goes wrong.


@on_platforms
async def test_a_rate_limit_is_told_with_its_wait(opened: PlatformRig) -> None:
    opened.fail_next(Fault.LIMITED)
    with pytest.raises(NotDone) as raised:
        await opened.channel.post(opened.direct, one_part(opened, "hi"), KEY, False)
    assert raised.value.retry_after == 7
    assert not raised.value.fatal
    assert not raised.value.formatting


@on_platforms
async def test_a_lost_answer_is_unknown(opened: PlatformRig) -> None:
    for route in (opened.direct, opened.shared):
        shown = len(opened.shown(route))
        opened.fail_next(Fault.LOST)
        with pytest.raises(Unknown):
            await opened.channel.post(route, one_part(opened, "perhaps"), KEY, False)
        assert opened.shown(route)[shown:] == ["perhaps"]


@where(lambda rig: rig.kind.capabilities.find)
async def test_what_was_shown_though_its_answer_was_lost_is_found(opened: PlatformRig) -> None:
    channel, since = opened.channel, datetime.now(UTC)
    for route in (opened.direct, opened.shared):
        shown = len(opened.shown(route))
        opened.fail_next(Fault.LOST)
        with pytest.raises(Unknown):
            await channel.post(route, one_part(opened, "perhaps"), KEY, False)
        found = await channel.find(route, KEY, since, ())
        assert found is not None
        await channel.put(route, found, one_part(opened, "for sure"), None, KEY, False)
        assert opened.shown(route)[shown:] == ["for sure"]
        assert await channel.find(route, KEY, since, [found]) is None
        assert await channel.find(route, "delivery-2.0", since, ()) is None


@where(lambda rig: not rig.kind.capabilities.find)
async def test_looking_is_refused_where_the_platform_cannot_be_asked(opened: ChannelRig) -> None:
    with pytest.raises(Refused):
        await opened.channel.find(opened.direct, KEY, datetime.now(UTC), ())


@on_platforms
async def test_a_platform_that_is_down_took_nothing_and_is_not_said_to_have_refused(opened: PlatformRig) -> None:
    await opened.go_down()
    for _ in range(2):
        with pytest.raises(Unreachable) as raised:
            await opened.channel.post(opened.direct, one_part(opened, "hi"), KEY, False)
        assert not raised.value.fatal
        assert raised.value.retry_after is None
        told = "".join(traceback.format_exception(raised.value))
        assert not any(secret in told for secret in opened.secrets())


@on_platforms
async def test_refused_formatting_is_told_and_the_plain_form_passes(opened: PlatformRig) -> None:
    part = one_part(opened, "**so** 1 < 2 & `x`")
    opened.fail_next(Fault.BAD_FORMAT)
    with pytest.raises(NotDone) as raised:
        await opened.channel.post(opened.direct, part, KEY, False)
    assert raised.value.formatting
    assert not raised.value.fatal
    await opened.channel.post(opened.direct, part.as_plain(), KEY, False)
    assert opened.shown(opened.direct)[-1] == part.plain


@on_platforms
async def test_being_blocked_is_fatal(opened: PlatformRig) -> None:
    opened.fail_next(Fault.BLOCKED)
    with pytest.raises(NotDone) as raised:
        await opened.channel.post(opened.direct, one_part(opened, "hi"), KEY, False)
    assert raised.value.fatal
    assert raised.value.code


@on_platforms
async def test_an_internal_error_of_the_platform_is_unknown(opened: PlatformRig) -> None:
    opened.fail_next(Fault.BROKEN)
    with pytest.raises(Unknown):
        await opened.channel.post(opened.direct, one_part(opened, "hi"), KEY, False)


@on_platforms
@pytest.mark.parametrize("fault", Fault)
async def test_no_error_holds_a_token(opened: PlatformRig, fault: Fault) -> None:
    """Case K5: nor does the error behind it."""
    opened.fail_next(fault)
    with pytest.raises((NotDone, Unknown)) as raised:
        await opened.channel.post(opened.direct, one_part(opened, "hi"), KEY, False)
    told = "".join(traceback.format_exception(raised.value))
    assert not any(secret in told for secret in opened.secrets())
