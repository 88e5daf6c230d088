"""A whole gateway in this process, with one channel that has no platform behind it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from gateway.app.core import Core, open_core
from gateway.app.working import working
from gateway.config.load import load_settings
from gateway.domain.inbound import Inbound, InboundKind
from gateway.domain.keys import Route
from gateway.domain.message import Sender
from gateway.domain.outbound import Part, Ref
from gateway.domain.policy import Rules
from gateway.logs.setup import configure
from tests.fakes import FakeChannel

NULL = "null"


class NullChannel(FakeChannel):
    """Sends nowhere, and tells who waits for a chat's answer when it has been sent."""

    def __init__(self) -> None:
        super().__init__(NULL, part_size=10_000)
        self.sent: dict[str, asyncio.Event] = {}

    async def post(self, to: Route, part: Part, key: str, live: bool) -> Ref:
        if (waiting := self.sent.get(to.chat_id)) is not None:
            waiting.set()
        return Ref(id=key)


@asynccontextmanager
async def running(folder: Path, variables: Mapping[str, str] | None = None) -> AsyncIterator[tuple[Core, NullChannel]]:
    """Run a gateway whose data are in a folder, with these environment variables and the model that echoes."""
    settings = load_settings(None, variables or {}, {}, folder)
    # Logging costs too, so it is on as it is in `run`, into a file.
    logging_off = configure(level="info", file=folder / "bench.log", stderr_level="error")
    channel = NullChannel()
    try:
        async with open_core(
            settings,
            {NULL: channel},
            name="bench",
            environment={},
            extra_rules={NULL: Rules(people=frozenset({"*"}))},
        ) as core:
            await core.receivers.open()
            async with working(core):
                yield core, channel
    finally:
        logging_off()


def said(chat: str, text: str = "How are you today?") -> Inbound:
    """Return what a person says in a chat of their own with the bot."""
    return Inbound(
        kind=InboundKind.MESSAGE,
        route=Route(NULL, chat),
        dedupe_key=uuid.uuid4().hex,
        sender=Sender(id="U1"),
        sent_at=datetime.now(UTC),
        text=text,
        is_direct=True,
        addresses_bot=True,
    )
