"""Sessions in SQL."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gateway.domain.errors import NotFound, Refused
from gateway.domain.keys import SessionKey
from gateway.domain.message import Mark, Message
from gateway.domain.origins import Origin
from gateway.domain.session import Session
from gateway.domain.titles import TitleSource
from gateway.ports.clock import Clock
from gateway.ports.sessions import (
    UPDATABLE,
    Found,
    NewSession,
    Restored,
    SessionCopy,
    SessionPage,
    SessionQuery,
    Sessions,
)
from gateway.ports.tokens import TokenCounter
from gateway.store import appending, attic, forking, listing, moving, naming, searching
from gateway.store.codec import ORIGIN, dump, to_micros
from gateway.store.counting import RowCounter
from gateway.store.database import Database, Transaction
from gateway.store.headers import (
    COLUMNS,
    IdMaker,
    decode_header,
    encode_field,
    find_open,
    header_row,
    open_session,
)

_MARK = """
INSERT INTO message_marks (session_id, seq, mark, marked_at)
SELECT session_id, seq, ?, ? FROM messages WHERE session_id = ? AND seq = ?
ON CONFLICT DO NOTHING
"""

_BEGINNING = f"""
SELECT {", ".join(COLUMNS)} FROM sessions WHERE id >= ? AND id < ? AND deleted_at IS NULL
ORDER BY updated_at DESC LIMIT ?
"""
_ERASE_PARTS = """
UPDATE outbox_parts SET body = NULL WHERE delivery_id IN (SELECT id FROM outbox WHERE session_id = ?)
"""
_ERASE = """
UPDATE sessions SET title = '', title_source = 0, preview = '', preview_role = '', message_count = 0, origin = NULL,
    origin_kind = NULL, extra_roots = '[]', grants = '{}', compaction = '{}', metadata = '{}' WHERE id = ?
"""


_BREATH_SECONDS = 0.02
"""Between two parts of a long restore, for another process that waits for the lock: it only looks now and then."""


def _new_token() -> int:
    return -1 - secrets.randbits(60)


class SqlSessions(Sessions):
    """Keeps headers, rows and marks in a `Database`."""

    def __init__(self, database: Database, clock: Clock, make_id: IdMaker, count: TokenCounter) -> None:
        self._database = database
        self._count = count
        self._counted = RowCounter(count)
        self._clock = clock
        self._make_id = make_id

    async def open(self, key: SessionKey, new: NewSession) -> Session:
        return await self._database.write(
            lambda tx: decode_header(open_session(tx, key, new, self._make_id, self._clock.now()))
        )

    async def get(self, ref: str | SessionKey) -> Session:
        def work(tx: Transaction) -> Session:
            if isinstance(ref, str):
                return decode_header(header_row(tx, ref))
            if (row := find_open(tx, ref)) is None:
                raise NotFound(f"no session is open for {str(ref)!r}")
            return decode_header(row)

        return await self._database.read(work)

    async def beginning(self, prefix: str, *, limit: int = 10) -> Sequence[Session]:
        def work(tx: Transaction) -> Sequence[Session]:
            # Ids are compared as bytes, so all that begin with the prefix lie between it and its last successor.
            found = tx.values(_BEGINNING, prefix, prefix + "\U0010ffff", limit)
            return [header for row in found if (header := listing.readable(row)) is not None]

        return await self._database.read(work)

    async def page(
        self, session_id: str, *, before: int | None = None, after: int | None = None, limit: int = 200
    ) -> Sequence[Message]:
        if before is not None and after is not None:
            raise Refused("expected `before` or `after`, got both")

        def work(tx: Transaction) -> Sequence[Message]:
            header_row(tx, session_id)
            return listing.page(tx, session_id, before=before, after=after, limit=limit)

        return await self._database.read(work)

    async def append(self, session_id: str, rows: Sequence[Message]) -> Sequence[Message]:
        counted = await self._counted(rows)

        def work(tx: Transaction) -> Sequence[Message]:
            if not counted:
                return ()
            first = appending.append(tx, session_id, counted, self._clock.now())
            return listing.page(tx, session_id, before=None, after=first - 1, limit=len(counted))

        return await self._database.write(work)

    async def update(self, session_id: str, patch: Mapping[str, Any]) -> Session:
        if wrong := sorted(set(patch) - UPDATABLE):
            raise Refused(f"expected fields of {sorted(UPDATABLE)}, got {wrong}")

        def work(tx: Transaction) -> Session:
            header_row(tx, session_id)
            for name, value in patch.items():
                # The name is one of UPDATABLE, so it is safe inside the statement.
                tx.execute(f"UPDATE sessions SET {name} = ? WHERE id = ?", encode_field(name, value), session_id)
            return decode_header(header_row(tx, session_id))

        return await self._database.write(work)

    async def set_origin(self, session_id: str, origin: Origin) -> bool:
        def work(tx: Transaction) -> bool:
            header_row(tx, session_id)
            changed = tx.execute(
                "UPDATE sessions SET origin = ?, origin_kind = ? WHERE id = ? AND origin IS NULL",
                dump(ORIGIN, origin),
                origin.kind,
                session_id,
            )
            return changed == 1

        return await self._database.write(work)

    async def set_title(self, session_id: str, title: str, source: TitleSource) -> bool:
        def work(tx: Transaction) -> bool:
            header_row(tx, session_id)
            return naming.set_title(tx, session_id, title, source)

        return await self._database.write(work)

    async def try_title(self, session_id: str, most: int) -> bool:
        def work(tx: Transaction) -> bool:
            sql = """
            UPDATE sessions SET title_attempts = title_attempts + 1
            WHERE id = ? AND title_attempts < ? AND title_source < ? AND deleted_at IS NULL
            """
            return tx.execute(sql, session_id, most, TitleSource.GENERATED) == 1

        return await self._database.write(work)

    async def mark(self, session_id: str, seqs: Sequence[int], mark: Mark) -> int:
        def work(tx: Transaction) -> int:
            header_row(tx, session_id)
            now = to_micros(self._clock.now())
            marked = sum(tx.execute(_MARK, mark, now, session_id, seq) for seq in seqs)
            naming.refresh_names(tx, session_id)
            return marked

        return await self._database.write(work)

    async def retire(self, session_id: str, seqs: Sequence[int], reason: str) -> int:
        def work(tx: Transaction) -> int:
            header_row(tx, session_id)
            return attic.retire(tx, session_id, seqs, reason, to_micros(self._clock.now()))

        return await self._database.write(work)

    async def clear(self, session_id: str) -> int:
        def work(tx: Transaction) -> int:
            header = decode_header(header_row(tx, session_id))
            seqs = [row["seq"] for row in tx.all("SELECT seq FROM messages WHERE session_id = ?", session_id)]
            metadata = {name: value for name, value in header.metadata.items() if name != "_last_summary"}
            tx.execute("UPDATE sessions SET compaction = '{}' WHERE id = ?", session_id)
            tx.execute("UPDATE sessions SET metadata = ? WHERE id = ?", encode_field("metadata", metadata), session_id)
            return attic.retire(tx, session_id, seqs, "cleared", to_micros(self._clock.now()))

        return await self._database.write(work)

    async def attic(self, session_id: str, *, after: int = 0, limit: int = 200) -> Sequence[Message]:
        def work(tx: Transaction) -> Sequence[Message]:
            header_row(tx, session_id)
            return attic.page(tx, session_id, after, limit)

        return await self._database.read(work)

    async def close(self, key: SessionKey, *, only: str | None = None) -> Session | None:
        def work(tx: Transaction) -> Session | None:
            row = find_open(tx, key)
            if row is None or (only is not None and row["id"] != only):
                return None
            tx.execute("UPDATE sessions SET closed_at = ? WHERE id = ?", to_micros(self._clock.now()), row["id"])
            return decode_header(header_row(tx, row["id"]))

        return await self._database.write(work)

    async def fork(self, session_id: str, before: int, key: SessionKey) -> Session:
        def work(tx: Transaction) -> Session:
            source = decode_header(header_row(tx, session_id))
            if find_open(tx, key) is not None:
                raise Refused(f"expected a key without an open session, got {str(key)!r}")
            return forking.fork(tx, source, before, key, self._make_id, self._clock.now())

        return await self._database.write(work)

    async def attach(self, session_id: str, key: SessionKey, *, closing: str | None = None) -> Session:
        def work(tx: Transaction) -> Session:
            return moving.attach(tx, session_id, key, closing, self._clock.now())

        return await self._database.write(work)

    async def copy(self, session_id: str) -> SessionCopy:
        return await self._database.read(lambda tx: moving.copy(tx, session_id))

    async def restore(self, copy: SessionCopy) -> Restored:
        counted = await asyncio.to_thread(moving.counted_copy, copy, self._count)
        await self.discard_unfinished(copy.session.id)
        if len(copy.rows) + len(copy.attic) > moving.CHUNK:
            return await self._restore_in_chunks(counted)
        return await self._database.write(lambda tx: moving.restore(tx, counted, self._clock.now()))

    async def _restore_in_chunks(self, copy: SessionCopy) -> Restored:
        now, token = self._clock.now(), _new_token()
        restored = await self._database.write(lambda tx: moving.begin(tx, copy, token))
        if restored in (Restored.KNOWN, Restored.DELETED):
            return restored
        for chunk in moving.chunks(copy):
            await self._database.write(partial(moving.add, chunk=chunk, token=token, now=now))
            await asyncio.sleep(_BREATH_SECONDS)
        return await self._database.write(lambda tx: moving.finish(tx, copy, token))

    async def discard_unfinished(self, session_id: str) -> None:
        if not await self._database.read(lambda tx: moving.is_unfinished(tx, session_id)):
            return
        token = _new_token()
        await self._database.write(lambda tx: moving.take_over(tx, session_id, token))
        is_more = True
        while is_more:
            is_more = await self._database.write(lambda tx: moving.discard(tx, session_id, token))
            await asyncio.sleep(_BREATH_SECONDS)

    async def would_restore(self, copy: SessionCopy) -> Restored:
        return await self._database.read(lambda tx: moving.would_restore(tx, copy))

    async def delete(self, session_id: str) -> bool:
        def work(tx: Transaction) -> bool:
            deleted = tx.execute(
                "UPDATE sessions SET deleted_at = ? WHERE id = ? AND deleted_at IS NULL",
                to_micros(self._clock.now()),
                session_id,
            )
            if deleted:
                tx.execute("DELETE FROM message_marks WHERE session_id = ?", session_id)
                tx.execute("DELETE FROM messages WHERE session_id = ?", session_id)
                tx.execute("DELETE FROM attic WHERE session_id = ?", session_id)
                tx.execute("DELETE FROM set_aside WHERE session_id = ?", session_id)
                tx.execute(_ERASE, session_id)
                tx.execute(_ERASE_PARTS, session_id)
                tx.execute("UPDATE outbox SET state = 'done', body = NULL WHERE session_id = ?", session_id)
                tx.execute("DELETE FROM media WHERE session_id = ?", session_id)
                tx.execute("UPDATE inbox SET state = 'done', body = NULL WHERE session_id = ?", session_id)
                tx.execute(
                    "UPDATE turns SET state = 'stopped' WHERE session_id = ? AND state IN ('running', 'waiting')",
                    session_id,
                )
            return bool(deleted)

        return await self._database.write(work)

    async def list(self, query: SessionQuery) -> SessionPage:
        return await self._database.read(lambda tx: listing.sessions(tx, query))

    async def search(self, words: str, *, limit: int = 20) -> Sequence[Found]:
        return await self._database.read(lambda tx: searching.search(tx, words, limit))
