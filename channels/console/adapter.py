"""The console channel: lines in, answers out, for one person who is always `local`."""

from __future__ import annotations

import io
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import TextIO

from channels.console.lines import Lines, PipedLines, PromptedLines, WholeInput
from channels.console.options import ConsoleOptions
from channels.console.text import lay_out, printable
from gateway.domain.errors import NotDone, Refused, Unavailable
from gateway.domain.inbound import Inbound, InboundKind
from gateway.domain.keys import Route
from gateway.domain.message import MediaRef, Sender
from gateway.domain.origins import Origin
from gateway.domain.outbound import Outbound, Part, Ref
from gateway.domain.text import visible
from gateway.ports.channel import Capabilities, Channel, Health, HttpRoute, Presence, Sink
from gateway.ports.clock import Clock
from gateway.ports.vitals import Vitals

CHAT = "local"
"""The one chat there is, and the id of the one person in it."""
RETRY_SECONDS = 1.0


def _random_id() -> str:
    return uuid.uuid4().hex


class ConsoleChannel(Channel):
    """A chat with whoever types into this process.

    The standard streams are looked up when they are used, since a prompt replaces them for a while.
    """

    kind = "console"
    capabilities = Capabilities()

    def __init__(
        self,
        name: str,
        options: ConsoleOptions,
        clock: Clock,
        *,
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
        make_id: Callable[[], str] = _random_id,
    ) -> None:
        self.name = name
        self._options = options
        self._clock = clock
        self._stdin = stdin
        self._stdout = stdout
        self._make_id = make_id
        self._lines: Lines | None = None
        self._held: Inbound | None = None
        self._vitals = Vitals()
        self._on_terminal = False

    async def open(self) -> None:
        """Find out whether a person sits at a terminal."""
        stdin = self._stdin or sys.stdin or io.StringIO()
        self._on_terminal = stdin.isatty() and self._out is not None and self._out.isatty()
        if self._on_terminal:
            self._lines = PromptedLines(self._options.prompt)
        else:
            self._lines = (WholeInput if self._options.one_message else PipedLines)(stdin)

    async def close(self) -> None:
        """Do nothing: the streams belong to the process."""
        self._lines = None

    async def receive(self, sink: Sink) -> None:
        """Bring lines in until cancelled, or until there are no more."""
        if self._lines is None:
            raise RuntimeError("a channel is opened before it receives")
        self._vitals.hears(self._clock.now())
        ended = ""
        try:
            with self._lines.running():
                await self._receive(self._lines, sink)
            ended = "the input has ended"
        finally:
            self._vitals.is_deaf(ended or "stopped")

    async def _receive(self, lines: Lines, sink: Sink) -> None:
        while True:
            if self._held is not None:
                await self._hand_over(self._held, sink)
                self._held = None
            line = await lines.next()
            if line is None:
                return
            if line.strip():
                # Held until it was taken: a line cannot be asked for twice.
                self._held = self._inbound(line)

    async def _hand_over(self, inbound: Inbound, sink: Sink) -> None:
        while True:
            try:
                return await sink(inbound)
            except Unavailable as error:
                await self._clock.sleep(error.retry_after or RETRY_SECONDS)

    def _inbound(self, line: str) -> Inbound:
        now = self._clock.now()
        self._vitals.alive(now)
        self._vitals.came_in(now)
        return Inbound(
            kind=InboundKind.MESSAGE,
            route=Route(self.name, CHAT),
            dedupe_key=f"line:{self._make_id()}",
            sender=Sender(id=CHAT, name="you"),
            sent_at=now,
            text=line,
            is_direct=True,
            addresses_bot=True,
            origin=Origin(kind=self.kind, label="terminal", chat_id=CHAT, actor=CHAT),
        )

    def routes(self) -> Sequence[HttpRoute]:
        """Return nothing: nobody calls a terminal."""
        return ()

    def render(self, outbound: Outbound) -> Sequence[Part]:
        """Return the text as it is, in one part, wrapped nowhere."""
        text = lay_out(outbound)
        return (Part(text=text, plain=text),) if text else ()

    async def presence(self, route: Route, state: Presence) -> None:
        """Show nothing: the prompt is there all the time."""

    async def answer(self, choice: Inbound, reply: str) -> None:
        """Print the reply."""
        self._print(reply)

    def fetch(self, ref: MediaRef, max_bytes: int) -> AsyncIterator[bytes]:
        """Refuse: no file comes in through a terminal."""
        raise Refused(f"expected a file that came in here, got {ref.ref!r}; a terminal has none")

    def health(self) -> Health:
        """Return how the two halves are."""
        return self._vitals.health(self._clock.now())

    async def post(self, to: Route, part: Part, key: str, live: bool) -> Ref:
        """Print the text; a terminal has no ids, so its name here is the key."""
        self._print(part.text)
        return Ref(id=key)

    async def put(self, to: Route, ref: Ref, part: Part, old: Part | None, key: str, live: bool) -> Ref:
        """Print the new text below the old one, if it is another."""
        if old is None or part.text != old.text:
            self._print(part.text)
        return ref

    async def drop(self, to: Route, ref: Ref) -> None:
        """Refuse: what was printed stays."""
        raise NotDone("cannot_delete", fatal=True)

    async def find(self, to: Route, key: str, since: datetime, known: Sequence[Ref]) -> Ref | None:
        """Refuse: a terminal cannot be asked."""
        raise Refused("a terminal cannot be asked what it shows")

    @property
    def _out(self) -> TextIO | None:
        # Python has none where the process was started with its output closed.
        return self._stdout or sys.stdout

    def _print(self, text: str) -> None:
        shown = self._options.prefix + visible(text) if self._on_terminal else text
        out = self._out
        if out is None:
            raise NotDone("output_closed")
        try:
            out.write(printable(shown, out.encoding) + "\n")
            out.flush()
        except (OSError, ValueError) as error:
            # Whoever read us is gone, or the stream is closed; a reader may come back to a session that is resumed.
            raise NotDone("output_closed") from error
        self._vitals.went_out(self._clock.now())
