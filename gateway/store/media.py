"""What is known of kept files, as rows; their bytes are somewhere else."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice

from gateway.domain.errors import NotFound, Refused
from gateway.domain.text import whole
from gateway.ports.clock import Clock
from gateway.ports.media import MediaIndex, MediaMeta, StoredMedia
from gateway.store.codec import to_micros
from gateway.store.database import Database, Row, Transaction

ASKED_AT_ONCE = 500
"""How many values one statement takes; engines have a limit."""

_INSERT = """
INSERT INTO media (ref, session_id, sha256, kind, name, mime, size_bytes, width, height, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_USAGE = """
SELECT coalesce(sum(size_bytes), 0) AS bytes
FROM (SELECT max(size_bytes) AS size_bytes FROM media GROUP BY sha256) AS files
"""


class SqlMediaIndex(MediaIndex):
    """Keeps a row for each file of each session."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, stored: StoredMedia) -> StoredMedia:
        return await self._database.write(lambda tx: _add(tx, stored, to_micros(self._clock.now())))

    async def get(self, ref: str) -> StoredMedia:
        row = await self._database.read(lambda tx: tx.one("SELECT * FROM media WHERE ref = ?", ref))
        if row is None:
            raise NotFound(f"no file is kept as {ref!r}")
        return _stored(row)

    async def find(self, session_id: str) -> Sequence[StoredMedia]:
        sql = "SELECT * FROM media WHERE session_id = ? ORDER BY created_at, ref"
        return [_stored(row) for row in await self._database.read(lambda tx: tx.all(sql, session_id))]

    async def delete(self, ref: str) -> bool:
        return bool(await self._database.write(lambda tx: tx.execute("DELETE FROM media WHERE ref = ?", ref)))

    async def used(self, sha256s: Collection[str]) -> set[str]:
        return await self._database.read(lambda tx: _used(tx, sha256s))

    async def usage(self, session_id: str | None = None) -> int:
        def work(tx: Transaction) -> int:
            if session_id is None:
                row = tx.one(_USAGE)
            else:
                row = tx.one("SELECT coalesce(sum(size_bytes), 0) AS bytes FROM media WHERE session_id = ?", session_id)
            assert row is not None
            return int(row["bytes"])

        return await self._database.read(work)


def _add(tx: Transaction, stored: StoredMedia, moment: int) -> StoredMedia:
    meta = stored.meta
    if tx.one("SELECT 1 FROM sessions WHERE id = ? AND deleted_at IS NOT NULL", meta.session_id) is not None:
        # Nothing would ever remove the row again.
        raise NotFound(f"the session {meta.session_id!r} was deleted")
    texts = (whole(text) for text in (meta.kind, meta.name, meta.mime))
    size = (stored.size_bytes, stored.width, stored.height)
    tx.execute(_INSERT, stored.ref, meta.session_id, stored.sha256, *texts, *size, moment)
    row = tx.one("SELECT * FROM media WHERE session_id = ? AND sha256 = ?", meta.session_id, stored.sha256)
    if row is None:
        raise Refused(f"expected a reference of these bytes, got {stored.ref!r}, which names others")
    return _stored(row)


def _used(tx: Transaction, sha256s: Collection[str]) -> set[str]:
    left, found = iter(sha256s), set()
    while some := list(islice(left, ASKED_AT_ONCE)):
        places = ", ".join("?" * len(some))
        found |= {row["sha256"] for row in tx.all(f"SELECT sha256 FROM media WHERE sha256 IN ({places})", *some)}
    return found


def _stored(row: Row) -> StoredMedia:
    meta = MediaMeta(session_id=row["session_id"], kind=row["kind"], name=row["name"], mime=row["mime"])
    return StoredMedia(
        ref=row["ref"],
        meta=meta,
        size_bytes=row["size_bytes"],
        sha256=row["sha256"],
        width=row["width"],
        height=row["height"],
    )
