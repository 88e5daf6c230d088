"""A Slack that runs on loopback: the documented Web API and Socket Mode, with levers for a test.

The gateway may run in this process or in another; it needs `api_url` and the two tokens.

    async with SlackServer() as slack:
        ana = slack.add_user("ana")
        …start the gateway, then…
        await slack.wait_connected()
        ts = await slack.dm(ana, "hello")
        await slack.until(lambda: slack.answers(slack.dm_channel(ana)))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web

from tests.loopback.slack_api import SCOPES, WebApi
from tests.loopback.slack_events import callback, posted
from tests.loopback.slack_faults import Faults, SlackFault, broken, held, limited, lost, refused
from tests.loopback.slack_socket import Envelope, Sockets
from tests.loopback.slack_wire import arguments_of, token_of
from tests.loopback.slack_world import (
    APP_ID,
    BOT_ID,
    BOT_USER,
    TEAM,
    Chat,
    SlackError,
    SlackMessage,
    World,
    typed,
)

HANG_SECONDS = 30
"""A guard against hanging, not a delay: waits end as soon as what they wait for is there."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the Web API as it came in; the token is left out."""

    method: str
    args: dict[str, Any]


class SlackServer:
    """The server and its levers."""

    team_id, bot_user, bot_id = TEAM, BOT_USER, BOT_ID

    def __init__(self) -> None:
        self.bot_token = "xoxb-test-1111-2222-loopbackbot"
        self.app_token = "xapp-test-1-A0TRUNK-3333-loopbackapp"
        self.world = World()
        self.api = WebApi(self.world)
        self.calls: list[Call] = []
        self.echo_own_posts = False
        """Whether the bot's own posts come back as events, as they do from Slack."""
        self._changes = asyncio.Condition()
        self._notices: set[asyncio.Task[None]] = set()
        self._faults = Faults()
        self.sockets = Sockets(self._changed)
        self.api_url = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=8 * 2**20)
        app.router.add_route("*", "/api/{method}", self._call)
        app.router.add_get("/link", self.sockets.serve)
        app.router.add_get("/files-pri/{id}/{name}", self._download)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self._base = f"{host}:{port}"
        self.api_url = f"http://{self._base}/api/"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Be gone, as after a power cut; whoever calls finds nobody."""
        self._faults.release()
        await self.sockets.close()
        await self._runner.cleanup()
        await asyncio.gather(*self._notices)

    # What people do.

    def add_user(self, name: str) -> str:
        """Add a person and open their direct chat; return their id."""
        user = f"U0{name.upper()}"
        self.world.users[user] = name
        self.world.dm_of(user)
        return user

    def add_channel(self, name: str, *members: str, bot: bool = True, kind: str = "channel") -> str:
        """Add a channel (or, with `kind`, an `mpim` or `group`) with these people and the bot; return its id."""
        chat_id = f"C0{name.upper()}"
        everyone = {*members, *([BOT_USER] if bot else [])}
        self.world.chats[chat_id] = Chat(id=chat_id, kind=kind, name=name, members=everyone)
        return chat_id

    def add_file(self, name: str, data: bytes, mime: str = "application/octet-stream") -> dict[str, Any]:
        """Keep a file; return its description, to be passed with a message."""
        file_id = self.world.next_id("F")
        url = f"http://{self._base}/files-pri/{file_id}/{name}"
        file = {"id": file_id, "name": name, "mimetype": mime, "size": len(data), "url_private": url}
        self.world.files[file_id] = ({**file, "mode": "hosted"}, data)
        return self.world.files[file_id][0]

    def dm_channel(self, user: str) -> str:
        """Return the id of a person's direct chat with the bot."""
        return self.world.dm_of(user).id

    async def dm(self, user: str, text: str, thread_ts: str | None = None, **more: Any) -> str:
        """A person writes to the bot; returns the message's timestamp."""
        return await self.say(user, self.dm_channel(user), text, thread_ts, **more)

    async def mention(
        self,
        user: str,
        channel: str,
        text: str,
        thread_ts: str | None = None,
        as_both_events: bool = True,
        **more: Any,
    ) -> str:
        """A person mentions the bot in a channel; Slack announces that as `app_mention` and as `message`."""
        kinds = ("app_mention", "message") if as_both_events else ("app_mention",)
        words = f"<@{BOT_USER}> {text if more.pop('raw', False) else typed(text)}"
        return await self.say(user, channel, words, thread_ts, raw=True, kinds=kinds, **more)

    async def say(
        self,
        user: str,
        channel: str,
        text: str,
        thread_ts: str | None = None,
        *,
        raw: bool = False,
        kinds: Sequence[str] = ("message",),
        files: Sequence[dict[str, Any]] = (),
        **fields: Any,
    ) -> str:
        """Somebody writes in a chat; `raw` text may hold Slack's own forms, `fields` go into the event."""
        chat, body = self.world.chats[channel], text if raw else typed(text)
        message = SlackMessage(ts=self.world.next_ts(), user=user, text=text, raw=body, thread_ts=thread_ts)
        message.files = list(files)
        chat.members.add(user)
        self.world.add(chat, message)
        for kind in kinds:
            await self.deliver(posted(kind, chat, message, fields))
        return message.ts

    async def other_bot(self, channel: str, text: str) -> str:
        """Another bot writes in a chat, mentioning ours."""
        fields = {"bot_id": "B0OTHER", "subtype": "bot_message", "username": "other"}
        return await self.say("U0OTHERBOT", channel, f"<@{BOT_USER}> {text}", raw=True, **fields)

    async def echo(self, channel: str, text: str) -> None:
        """Slack announces a message of the bot itself."""
        chat = self.world.chats[channel]
        message = SlackMessage(ts=self.world.next_ts(), user=BOT_USER, bot_id=BOT_ID, text=text, raw=typed(text))
        await self.deliver(posted("message", chat, message, {"bot_id": BOT_ID}))

    # What Slack does.

    async def deliver(self, event: dict[str, Any], retry: int = 0) -> Envelope:
        """Send any event."""
        return await self.sockets.deliver(callback(self.world, event), retry=retry)

    async def repeat_last(self) -> None:
        """Send the last event once more, in an envelope of its own, as a repeat."""
        last = self.sockets.envelopes[-1]
        await self.sockets.deliver(last.payload, type=last.type, retry=last.attempt + 1)

    async def redeliver_unacked(self) -> int:
        """Send again what was not acknowledged; return how much that is."""
        return await self.sockets.redeliver_unacked()

    async def refresh(self, reason: str = "refresh_requested") -> None:
        """Ask every connection to be replaced."""
        await self.sockets.refresh(reason)

    async def drop_connections(self) -> None:
        """Cut every Socket Mode connection."""
        await self.sockets.drop()

    def fail_next(self, fault: SlackFault, method: str | None = None) -> None:
        """Arm a fault for the next call of a method, or for the next call that shows something."""
        self._faults.arm(fault, method)

    def calm(self) -> None:
        """Forget the faults that no call has met yet."""
        self._faults.calm()

    # What can be seen.

    @property
    def acked(self) -> list[Envelope]:
        """The envelopes that were acknowledged, in order of sending."""
        return [envelope for envelope in self.sockets.envelopes if envelope.acked]

    @property
    def unacked(self) -> list[Envelope]:
        """The envelopes that were not."""
        return self.sockets.unacked

    def messages(self, channel: str, thread: str | None = None) -> list[str]:
        """Return the texts at the root of a chat, or of a thread with its first message, in order."""
        return [message.text for message in self.world.chats[channel].shown(thread)]

    def answers(self, channel: str, thread: str | None = None) -> list[str]:
        """Return the same, of the bot only."""
        return [m.text for m in self.world.chats[channel].shown(thread) if m.bot_id == BOT_ID]

    def private_notes(self, channel: str, user: str) -> list[str]:
        """Return what only this person was shown."""
        return [message.text for message in self.world.chats[channel].shown_privately(user)]

    def called(self, method: str) -> list[dict[str, Any]]:
        """Return the arguments of each call of a method."""
        return [call.args for call in self.calls if call.method == method]

    async def wait_connected(self, opened: int = 1) -> None:
        """Return once a connection is open, and at least so many have been opened."""
        await self.until(lambda: self.sockets.connected > 0 and self.sockets.opened >= opened)

    async def until(self, true: Callable[[], object]) -> None:
        """Return once `true()` is; it is asked after everything that happens here."""
        async with asyncio.timeout(HANG_SECONDS), self._changes:
            await self._changes.wait_for(true)

    # The wire.

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method, args = request.match_info["method"], await arguments_of(request)
        token = token_of(request) or str(args.pop("token", ""))
        self.calls.append(Call(method, args))
        self._changed()
        fault = self._faults.take(method)
        if fault.release is not None:
            await fault.release.wait()
        status, answer = 200, {"ok": True}
        if fault.apply or (fault.error is None and fault.status is None and not fault.lost):
            answer = self._answer(method, token, args)
        if fault.error is not None:
            answer = {"ok": False, "error": fault.error, **fault.facts}
        self._changed()
        if fault.lost:
            assert request.transport is not None
            request.transport.abort()
            return web.Response(status=500)
        headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
        status = fault.status or status
        if status >= 500:
            return web.Response(status=status, text="<html>our fault</html>", content_type="text/html")
        return web.json_response(answer, status=status, headers=headers)

    def _answer(self, method: str, token: str, args: dict[str, Any]) -> dict[str, Any]:
        try:
            self._check_token(method, token)
            if method == "apps.connections.open":
                return {"ok": True, "url": self._socket_url()}
            answer = self.api.call(method, args)
        except SlackError as error:
            return {"ok": False, "error": error.code, **error.facts}
        if self.echo_own_posts and method == "chat.postMessage":
            self._notice(self.world.chats[answer["channel"]], answer["ts"])
        return {"ok": True, **answer}

    def _socket_url(self) -> str:
        if "connections:write" in self.api.missing_scopes:
            raise SlackError("missing_scope", needed=SCOPES["apps.connections.open"], provided="none")
        return f"ws://{self._base}/link?ticket={self.sockets.ticket()}&app_id={APP_ID}"

    def _check_token(self, method: str, token: str) -> None:
        wanted, other = self.bot_token, self.app_token
        if method == "apps.connections.open":
            wanted, other = other, wanted
        if token != wanted:
            raise SlackError(
                "not_authed" if not token else "not_allowed_token_type" if token == other else "invalid_auth"
            )

    async def _download(self, request: web.Request) -> web.StreamResponse:
        """Send a file, or the sign-in page with status 200 as Slack does for a token without files:read."""
        token = token_of(request)
        self.calls.append(Call("files", {"id": request.match_info["id"]}))
        if token != self.bot_token or "files:read" in self.api.missing_scopes:
            return web.Response(text="<!DOCTYPE html><html><title>Slack</title></html>", content_type="text/html")
        found = self.world.files.get(request.match_info["id"])
        if found is None:
            return web.Response(status=404)
        fault = self._faults.take("files")
        if fault.status is not None:
            return web.Response(status=fault.status, headers=fault.facts.get("headers"))
        response = web.Response(body=found[1], content_type=found[0]["mimetype"])
        if fault.facts.get("chunked"):
            response.enable_chunked_encoding()
        return response

    def _notice(self, chat: Chat, ts: str) -> None:
        message = chat.find(ts)
        if message is not None:
            event = posted("message", chat, message, {"bot_id": BOT_ID})
            self._later(self.deliver(event))

    def _changed(self) -> None:
        self._later(self._tell())

    def _later(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)

    async def _tell(self) -> None:
        async with self._changes:
            self._changes.notify_all()


__all__ = ["Call", "SlackFault", "SlackServer", "broken", "held", "limited", "lost", "refused"]
