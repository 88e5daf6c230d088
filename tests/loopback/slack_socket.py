"""Slack's side of Socket Mode: connections, envelopes, acknowledgements, repeats."""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiohttp import WSMsgType, web

from tests.loopback.slack_world import APP_ID


@dataclass(kw_only=True, eq=False)
class Envelope:
    """One event on its way; `attempt` is 0 for the first delivery."""

    id: str
    type: str
    payload: dict[str, Any]
    attempt: int = 0
    acked: bool = False
    socket: web.WebSocketResponse | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the frame."""
        frame = {"envelope_id": self.id, "type": self.type, "payload": self.payload, "accepts_response_payload": False}
        reason = "timeout" if self.attempt else ""
        return {**frame, "retry_attempt": self.attempt, "retry_reason": reason} if self.type == "events_api" else frame


class Sockets:
    """All Socket Mode connections of the app. What a closed connection left unacknowledged goes to the next."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.envelopes: list[Envelope] = []
        self.acks: list[str] = []
        self.opened = 0
        self.most = 0
        """The most connections that were open at one time."""
        self.pings = 0
        self.says_hello = True
        self.refuses_tickets = False
        self.pongs = 0
        self.is_deaf = False
        """Whether pings go unanswered, as on a connection that is dead without being closed."""
        self._changed = changed
        self._numbers = itertools.count(1)
        self._tickets: set[str] = set()
        self._live: list[web.WebSocketResponse] = []

    @property
    def connected(self) -> int:
        """How many connections are open."""
        return len(self._live)

    @property
    def unacked(self) -> list[Envelope]:
        """What was not acknowledged, oldest first."""
        return [envelope for envelope in self.envelopes if not envelope.acked]

    def ticket(self) -> str:
        """Return a ticket for one connection."""
        ticket = secrets.token_hex(8)
        self._tickets.add(ticket)
        return ticket

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Be the server of one connection, from hello until it closes."""
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets or self.refuses_tickets:
            return web.Response(status=403, text="ticket")
        self._tickets.remove(ticket)
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        info = {"app_id": APP_ID}
        if not self.says_hello:
            await socket.receive()
            return socket
        await socket.send_json({"type": "hello", "num_connections": len(self._live) + 1, "connection_info": info})
        self._live.append(socket)
        self.opened += 1
        self.most = max(self.most, len(self._live))
        self._changed()
        try:
            await self._send_again([envelope for envelope in self.unacked if envelope.socket not in self._live])
            async for frame in socket:
                await self._hear(socket, frame)
        finally:
            if socket in self._live:
                self._live.remove(socket)
            self._changed()
        return socket

    async def deliver(self, payload: dict[str, Any], *, type: str = "events_api", retry: int = 0) -> Envelope:
        """Send an event to the newest connection; with none open it waits, and then comes as a repeat."""
        envelope = Envelope(id=f"env-{next(self._numbers)}", type=type, payload=payload, attempt=retry)
        self.envelopes.append(envelope)
        await self._send(envelope)
        return envelope

    async def redeliver_unacked(self) -> int:
        """Send everything not acknowledged once more, as Slack does after a while; return how much that is."""
        waiting = self.unacked
        await self._send_again(waiting)
        return len(waiting)

    async def refresh(self, reason: str = "refresh_requested") -> None:
        """Tell every connection that it should be replaced."""
        for socket in list(self._live):
            await socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "loopback"}})

    async def drop(self) -> None:
        """Cut every connection off without a closing frame."""
        for socket in list(self._live):
            self._live.remove(socket)
            transport = socket._req.transport if socket._req else None
            if transport is not None:
                transport.abort()
        self._changed()
        await asyncio.sleep(0)

    async def close(self) -> None:
        """Close every connection politely."""
        for socket in list(self._live):
            await socket.close()

    async def ping(self) -> None:
        """Ping every connection."""
        for socket in list(self._live):
            await socket.ping(b"loopback")

    async def send_raw(self, text: str) -> None:
        """Send any text as a frame to every connection."""
        for socket in list(self._live):
            await socket.send_str(text)

    async def _send_again(self, envelopes: list[Envelope]) -> None:
        for envelope in envelopes:
            envelope.attempt += 1
            await self._send(envelope)

    async def _send(self, envelope: Envelope) -> None:
        if self._live:
            envelope.socket = self._live[-1]
            # A process that was killed a moment ago: what it did not acknowledge goes to the next connection.
            with suppress(ConnectionResetError):
                await envelope.socket.send_json(envelope.as_json())

    async def _hear(self, socket: web.WebSocketResponse, frame: Any) -> None:
        if frame.type is WSMsgType.PING and not self.is_deaf:
            await socket.pong(frame.data)
            self.pings += 1
            self._changed()
        elif frame.type is WSMsgType.PONG:
            self.pongs += 1
            self._changed()
        elif frame.type is WSMsgType.TEXT:
            self._acknowledge(str(json.loads(frame.data).get("envelope_id")))

    def _acknowledge(self, envelope_id: str) -> None:
        self.acks.append(envelope_id)
        for envelope in self.envelopes:
            if envelope.id == envelope_id:
                envelope.acked = True
        self._changed()
