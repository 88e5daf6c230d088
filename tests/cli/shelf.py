"""A store for the tests of commands, and what they have in common."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from typer.testing import CliRunner

from gateway.cli.sessions import sessions
from gateway.domain.errors import TrunklineError
from gateway.domain.keys import Route
from gateway.domain.message import Message, Role
from gateway.domain.session import Session
from gateway.ports.leases import session_lease
from gateway.ports.sessions import NewSession
from gateway.store import Store, open_store
from tests.clock import ManualClock
from tests.stores import count_words, id_maker, message

T = TypeVar("T")
HEADER = [
    "id", "key", "workspace", "agent", "model", "mode", "title", "title_edited", "preview", "message_count",
    "created_at", "updated_at", "closed_at", "extra_roots", "grants", "pinned", "archived", "origin", "origin_label",
    "parent_id", "consolidated_through", "replay_from", "compaction", "metadata",
]  # fmt: skip
CHANNELS = ("slack", "telegram")
THREAD = Route("slack", "C1", "1.5")
DIRECT = Route("slack", "D1")
FAMILY = Route("telegram", "-100")
EVERY_COMMAND = (
    ["list"], ["show", "slack:D1"], ["search", "word"], ["rename", "slack:D1", "Title"], ["pin", "slack:D1"],
    ["archive", "slack:D1"], ["close", "slack:D1"], ["clear", "slack:D1", "--yes"],
    ["fork", "slack:D1", "slack:D2", "--before-user", "0"],
    ["attach", "slack:D1", "slack:D3"],
    ["delete", "slack:D1", "--yes"], ["stats"],
)  # fmt: skip


class Shelf:
    """A store that commands are run on, here in this process, and that is filled between them."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.clock = ManualClock(datetime(2026, 11, 20, 12, tzinfo=UTC))
        self._make_id = id_maker("session-")
        self._numbers = iter(range(1_000_000))
        if not data.exists():
            return
        # Without tokens, which are the gateway's own: what reads the store needs none.
        (data / "trunkline.toml").write_text("".join(f'[channels.{name}]\npeople = ["U1"]\n' for name in CHANNELS))

    def run(self, command: str, *arguments: str) -> tuple[int, str, str]:
        """Run a command; return its exit code, output and errors, as the process would have them."""
        # First, since behind `--` it would be one of the words, and the data of whoever runs the tests would be read.
        result = CliRunner().invoke(sessions, [command, "--data", str(self.data), *arguments])
        if isinstance(result.exception, TrunklineError):
            return 2, result.stdout, f"{result.stderr}{result.exception}"
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, result.stdout, result.stderr

    def lines(self, *arguments: str) -> list[str]:
        """Return what a command that succeeds prints."""
        code, out, err = self.run(*arguments)
        assert (code, err) == (0, "")
        return out.splitlines()

    def json(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the objects a command that succeeds prints."""
        code, out, _ = self.run(*arguments, "--json")
        assert code == 0
        found = json.loads(out)
        assert isinstance(found, list)
        return found

    def say(self, route: Route, *texts: str, rows: Sequence[Message] = (), new: NewSession | None = None) -> Session:
        """Store a turn a text, an hour apart, each answered by an echo; `rows` end the last one."""
        return self.act(lambda store: self._say(store, route, texts, rows, new or NewSession()))

    def act(self, work: Callable[[Store], Awaitable[T]]) -> T:
        """Do something to the store."""

        async def body() -> T:
            url = f"sqlite:///{self.data / 'trunkline.db'}"
            async with open_store(url, clock=self.clock, make_id=self._make_id, count=count_words) as store:
                return await work(store)

        return asyncio.run(body())

    async def _say(
        self, store: Store, route: Route, texts: Sequence[str], rows: Sequence[Message], new: NewSession
    ) -> Session:
        await store.sessions.open(route.key, new)
        for place, text in enumerate(texts, start=1):
            await self.clock.advance(3600)
            said = message(text, next(self._numbers), route=route, at=self.clock.now())
            session_id = await store.turns.accept(said, new)
            assert session_id is not None
            lease = await store.leases.acquire(session_lease(session_id), "test", timedelta(seconds=30))
            assert lease is not None
            turn = await store.turns.begin(session_id, lease)
            assert turn is not None
            answers = [Message(role=Role.ASSISTANT, content=f"echo of {text}")]
            await store.turns.finish(turn, lease, [*answers, *(rows if place == len(texts) else ())], [], None)
            await store.leases.release(lease)
        return await store.sessions.get(route.key)
