"""Opening a store by its URL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.domain.errors import ConfigError
from gateway.ports.clock import Clock
from gateway.ports.leases import Leases
from gateway.ports.media import MediaIndex
from gateway.ports.outbox import Outbox
from gateway.ports.sessions import Sessions
from gateway.ports.tokens import TokenCounter
from gateway.ports.turns import Turns
from gateway.store.headers import IdMaker
from gateway.store.leases import SqlLeases
from gateway.store.media import SqlMediaIndex
from gateway.store.outbox import SqlOutbox
from gateway.store.sessions import SqlSessions
from gateway.store.sqlite.database import SqliteDatabase
from gateway.store.sqlite.indexing import index_new_rows
from gateway.store.sqlite.migrate import prepare
from gateway.store.sqlite.salvage import mend_if_damaged
from gateway.store.turns import SqlTurns

_SQLITE = "sqlite:///"


@dataclass(frozen=True, slots=True)
class Store:
    """The ports of one open store."""

    sessions: Sessions
    turns: Turns
    outbox: Outbox
    leases: Leases
    media: MediaIndex
    fault: Callable[[], str | None]
    """Tells why nothing can be written any more, or None."""


def sqlite_path(url: str) -> Path:
    """Return the file a store URL names; raise `ConfigError` for a URL no store answers to."""
    path = url.removeprefix(_SQLITE)
    if not url.startswith(_SQLITE) or not path or path == ":memory:":
        raise ConfigError("store.url", f"expected sqlite:///PATH, got {url.split('://')[0]}://…")
    return Path(path).expanduser()


@asynccontextmanager
async def open_store(
    url: str, *, clock: Clock, make_id: IdMaker, count: TokenCounter, mend: bool = False
) -> AsyncIterator[Store]:
    """Open the store `url` names, migrated to this release's schema, and close it when the body ends.

    `make_id` makes ids nobody else makes. `mend` has the file checked, and, if it is damaged, put
    aside and replaced by what can be read of it; only for who is alone on it. Raises `ConfigError` for a URL that is
    not one, `Refused` for a file that is not ours or from a newer release, `Unavailable` for one that cannot be opened.
    """
    path = sqlite_path(url)
    if mend:
        await asyncio.to_thread(mend_if_damaged, path, clock.now())
    await asyncio.to_thread(prepare, path)
    database = SqliteDatabase(path, before_commit=index_new_rows)
    try:
        yield Store(
            sessions=SqlSessions(database, clock, make_id, count),
            turns=SqlTurns(database, clock, make_id, count),
            outbox=SqlOutbox(database, clock, make_id),
            leases=SqlLeases(database, clock),
            media=SqlMediaIndex(database, clock),
            fault=lambda: database.fault,
        )
    finally:
        await database.close()
