"""Reading files that came with a message: the file or nothing, and the token for Slack only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from channels.slack.adapter import SlackChannel
from channels.slack.files import check_host
from channels.slack.options import DEFAULT_API_URL
from gateway.domain.errors import Refused, Unavailable
from gateway.domain.message import MediaRef
from tests.channels.slack.conftest import ANA, Inbox, receiving
from tests.loopback.slack import SlackFault, SlackServer, broken

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 1000
PAGE = b"<!DOCTYPE html><html>hello</html>"


async def read(channel: SlackChannel, ref: MediaRef, max_bytes: int = 10**6) -> bytes:
    return b"".join([chunk async for chunk in channel.fetch(ref, max_bytes)])


def ref_of(file: dict[str, object], **changes: object) -> MediaRef:
    facts = {"ref": file["url_private"], "kind": "file", "mime": file["mimetype"], "size_bytes": file["size"]}
    return MediaRef(**{**facts, **changes})  # type: ignore[arg-type]


async def test_a_file_of_a_message_is_read_whole(slack: SlackServer, channel: SlackChannel, inbox: Inbox) -> None:
    file = slack.add_file("cat.png", PNG, "image/png")
    async with receiving(channel, inbox):
        await slack.dm(ANA, "look", files=[file])
        (inbound,) = await inbox.until(1)
    (ref,) = inbound.media
    assert (ref.kind, ref.name, ref.mime, ref.size_bytes) == ("image", "cat.png", "image/png", len(PNG))
    assert await read(channel, ref) == PNG


@pytest.mark.parametrize("told", [len(PNG), None, 10])
async def test_a_file_that_is_too_large_is_refused(slack: SlackServer, channel: SlackChannel, told: int | None) -> None:
    ref = ref_of(slack.add_file("cat.png", PNG, "image/png"), size_bytes=told)
    with pytest.raises(Refused, match="at most 1000 bytes"):
        await read(channel, ref, 1000)


async def test_a_file_of_untold_size_is_refused_where_it_gets_too_large(
    slack: SlackServer, channel: SlackChannel
) -> None:
    file = slack.add_file("cat.png", PNG, "image/png")
    for limit in (1000, len(PNG) - 1, len(PNG)):
        slack.fail_next(SlackFault(facts={"chunked": True}), "files")
        if limit == len(PNG):
            assert await read(channel, ref_of(file, size_bytes=None), limit) == PNG
            continue
        with pytest.raises(Refused, match="at most"):
            await read(channel, ref_of(file, size_bytes=None), limit)


async def test_a_sign_in_page_is_not_the_file(slack: SlackServer, channel: SlackChannel) -> None:
    slack.api.missing_scopes.add("files:read")
    with pytest.raises(Refused, match="files:read"):
        await read(channel, ref_of(slack.add_file("cat.png", PNG, "image/png")))


async def test_a_page_under_an_image_header_is_not_the_file(slack: SlackServer, channel: SlackChannel) -> None:
    with pytest.raises(Refused, match="files:read"):
        await read(channel, ref_of(slack.add_file("cat.png", b"\n  " + PAGE, "image/png")))


async def test_a_page_that_was_sent_as_a_page_is_the_file(slack: SlackServer, channel: SlackChannel) -> None:
    file = slack.add_file("a.html", PAGE, "text/html")
    assert await read(channel, ref_of(file)) == PAGE
    slack.api.missing_scopes.add("files:read")
    with pytest.raises(Refused, match="files:read"):
        await read(channel, ref_of(file))


@pytest.mark.parametrize(
    ("fault", "error"),
    [(broken(500), Unavailable), (broken(429), Unavailable), (broken(403), Refused), (broken(404), Refused)],
)
async def test_an_error_is_not_the_file(
    slack: SlackServer, channel: SlackChannel, fault: SlackFault, error: type[Exception]
) -> None:
    slack.fail_next(fault, "files")
    with pytest.raises(error):
        await read(channel, ref_of(slack.add_file("cat.png", PNG, "image/png")))


@pytest.fixture
async def stranger() -> AsyncIterator[tuple[str, list[str]]]:
    """A server that is not Slack's, with the tokens it was shown."""
    shown: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        shown.append(request.headers.get("Authorization", ""))
        return web.Response(body=b"stolen")

    app = web.Application()
    app.router.add_get("/{any:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/x", shown
    await runner.cleanup()


async def test_the_token_is_shown_to_no_stranger(
    slack: SlackServer, channel: SlackChannel, stranger: tuple[str, list[str]]
) -> None:
    url, shown = stranger
    with pytest.raises(Refused, match="own hosts"):
        await read(channel, MediaRef(ref=url, kind="image"))
    slack.fail_next(SlackFault(status=302, facts={"headers": {"Location": url}}), "files")
    with pytest.raises(Refused, match="own hosts"):
        await read(channel, ref_of(slack.add_file("cat.png", PNG, "image/png")))
    assert shown == []


async def test_a_redirect_inside_slack_is_followed_but_not_for_ever(slack: SlackServer, channel: SlackChannel) -> None:
    file = slack.add_file("cat.png", PNG, "image/png")
    here = SlackFault(status=302, facts={"headers": {"Location": file["url_private"]}})
    slack.fail_next(here, "files")
    assert await read(channel, ref_of(file)) == PNG
    for _ in range(4):
        slack.fail_next(here, "files")
    with pytest.raises(Refused, match="redirects"):
        await read(channel, ref_of(file))


@pytest.mark.parametrize(
    "url", ["https://files.slack.com/files-pri/x", "https://slack.com/x", "https://acme.slack.com/x"]
)
def test_slacks_own_hosts_may_see_the_token(url: str) -> None:
    check_host(url, DEFAULT_API_URL)


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.test/x",
        "https://notslack.com/x",
        "https://slack.com.evil.test/x",
        "https://files.slack.com:8443/x",
        "http://files.slack.com/x",
        "http://slack.com/x",
        "https://files.slack.com@evil.test/x",
        "file:///etc/passwd",
        "not an address",
        "https://[broken",
        "https://files.slack.com:port/x",
        "",
    ],
)
def test_no_other_host_may(url: str) -> None:
    with pytest.raises(Refused):
        check_host(url, DEFAULT_API_URL)


async def test_giving_up_a_download_leaves_nothing_open(slack: SlackServer, channel: SlackChannel) -> None:
    stream = channel.fetch(ref_of(slack.add_file("cat.png", PNG * 20, "image/png")), 10**9)
    assert await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    await asyncio.sleep(0)
