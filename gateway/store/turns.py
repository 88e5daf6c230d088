"""Turns in SQL: each verb is one transaction whose first statement checks the lease."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from gateway.domain.errors import LeaseLost, Refused
from gateway.domain.inbound import Inbound, as_row
from gateway.domain.keys import Route, SessionKey
from gateway.domain.message import MediaRef, Message
from gateway.domain.outbound import NewDelivery
from gateway.domain.turn import Turn, TurnState, Usage, Waiting
from gateway.ports.clock import Clock
from gateway.ports.leases import Lease, session_lease
from gateway.ports.sessions import NewSession
from gateway.ports.tokens import TokenCounter
from gateway.ports.turns import Turns
from gateway.store import appending, inbox, leases, outbox_rows, rows
from gateway.store.codec import ROUTE, dump, from_micros, parsed_json, to_json, to_micros
from gateway.store.counting import RowCounter
from gateway.store.database import Database, Row, Transaction
from gateway.store.guard import check_lease
from gateway.store.headers import IdMaker, header_row
from gateway.store.waiting import DUE, UNFINISHED, has_work, is_resumable, set_down, waited

T = TypeVar("T")


class SqlTurns(Turns):
    """Keeps the inbox and the turns in a `Database`. Tokens are counted before a row is stored, off the event loop."""

    def __init__(self, database: Database, clock: Clock, make_id: IdMaker, count: TokenCounter) -> None:
        self._database = database
        self._clock = clock
        self._make_id = make_id
        self._counted = RowCounter(count)

    async def accept(self, inbound: Inbound, new: NewSession) -> str | None:
        (row,) = await self._counted([as_row(inbound)])
        tokens = row.tokens or 0
        return await self._database.write(
            lambda tx: inbox.store(tx, inbound, tokens, new, self._make_id, self._clock.now())
        )

    async def begin(self, session_id: str, lease: Lease) -> Turn | None:
        def work(tx: Transaction) -> Turn | None:
            check_lease(tx, lease, session_lease(session_id))
            unfinished = tx.one(UNFINISHED, session_id)
            if unfinished is not None:
                return self._resume(tx, unfinished)
            return self._start(tx, session_id)

        return await self._database.write(work)

    async def join(self, turn: Turn, lease: Lease) -> Sequence[Message]:
        def work(tx: Transaction) -> Sequence[Message]:
            _check(tx, turn, lease)
            waiting = inbox.pending(tx, turn.session_id)
            claimed = inbox.claim(tx, turn.session_id, turn.id, waiting, self._clock.now())
            if claimed is None:
                return ()
            placed, route = claimed
            tx.execute("UPDATE turns SET route = ? WHERE id = ?", dump(ROUTE, route), turn.id)
            return placed

        return await self._database.write(work)

    async def append_round(self, turn: Turn, lease: Lease, rows: Sequence[Message], usage: Usage | None) -> None:
        await self._write(turn, lease, rows, usage, lambda tx: None)

    async def consolidate(
        self,
        turn: Turn,
        lease: Lease,
        through: int,
        compaction: Mapping[str, Any],
        rows: Sequence[Message],
        *,
        revision: int | None = None,
        deliveries: Sequence[NewDelivery] = (),
    ) -> None:
        def work(tx: Transaction) -> None:
            sql = """
            UPDATE sessions SET consolidated_through = ?, compaction = ?, replay_from = 0
            WHERE id = ? AND consolidated_through <= ? AND revision = coalesce(?, revision)
            """
            if not tx.execute(sql, through, to_json(dict(compaction)), turn.session_id, through, revision):
                raise Refused(f"expected a row after what is summed up, of rows that are still the same, got {through}")
            for delivery in deliveries:
                outbox_rows.enqueue(tx, delivery, self._make_id(), self._clock.now())

        await self._write(turn, lease, rows, None, work)

    async def suspend(self, turn: Turn, lease: Lease, waiting: Waiting, deliveries: Sequence[NewDelivery] = ()) -> None:
        def work(tx: Transaction) -> None:
            _check(tx, turn, lease)
            set_down(tx, turn.id, waiting)
            self._end(tx, turn, TurnState.WAITING, deliveries)

        await self._database.write(work)

    async def finish(
        self,
        turn: Turn,
        lease: Lease,
        rows: Sequence[Message],
        deliveries: Sequence[NewDelivery],
        usage: Usage | None,
    ) -> None:
        await self._write(turn, lease, rows, usage, lambda tx: self._end(tx, turn, TurnState.DONE, deliveries))

    async def fail(self, turn: Turn, lease: Lease, outcome: TurnState, deliveries: Sequence[NewDelivery]) -> None:
        await self._write(turn, lease, (), None, lambda tx: self._end(tx, turn, outcome, deliveries))

    async def request_stop(self, session_id: str, by: str) -> bool:
        def work(tx: Transaction) -> bool:
            sql = "UPDATE turns SET stop_requested_by = ? WHERE session_id = ? AND state IN ('running', 'waiting')"
            return tx.execute(sql, by, session_id) == 1

        return await self._database.write(work)

    async def release_if_idle(self, session_id: str, lease: Lease) -> bool:
        def work(tx: Transaction) -> bool:
            check_lease(tx, lease, session_lease(session_id))
            if has_work(tx, session_id, to_micros(self._clock.now())):
                return False
            leases.release(tx, lease)
            return True

        return await self._database.write(work)

    async def due(self, channels: Sequence[str], limit: int) -> Sequence[str]:
        def work(tx: Transaction) -> Sequence[str]:
            now = to_micros(self._clock.now())
            found = tx.all(
                DUE.format(channels=", ".join("?" * len(channels))),
                *channels,
                now,
                *channels,
                now,
                now,
                limit,
            )
            return [row["session_id"] for row in found]

        return await self._database.read(work)

    async def keep_media(self, turn: Turn, lease: Lease, seq: int, media: Sequence[MediaRef]) -> None:
        def work(tx: Transaction) -> None:
            _check(tx, turn, lease)
            rows.keep_media(tx, turn.session_id, seq, media)

        await self._database.write(work)

    async def counts(self, provider: str, model: str, limit: int) -> Sequence[tuple[int, int]]:
        sql = """
        SELECT counted_tokens, input_tokens FROM usage
        WHERE provider = ? AND model = ? AND counted_tokens > 0 ORDER BY created_at DESC, number DESC LIMIT ?
        """
        found = await self._database.read(lambda tx: tx.values(sql, provider, model, limit))
        return [(counted, reported) for counted, reported in found]

    async def latest_usage(self, session_id: str) -> Usage | None:
        sql = """
        SELECT * FROM usage WHERE session_id = ? AND counted_tokens > 0 ORDER BY created_at DESC, number DESC LIMIT 1
        """
        row = await self._database.read(lambda tx: tx.one(sql, session_id))
        return None if row is None else Usage(**{field.name: row[field.name] for field in fields(Usage)})

    async def forget(self) -> int:
        return await self._database.write(lambda tx: inbox.forget(tx, self._clock.now()))

    def _resume(self, tx: Transaction, row: Row) -> Turn | None:
        if not is_resumable(tx, row, to_micros(self._clock.now())):
            return None
        died = row["state"] == TurnState.RUNNING
        tx.execute(
            """
            UPDATE turns SET state = 'running', waiting_until = NULL, attempt = attempt + ?, updated_at = ? WHERE id = ?
            """,
            int(died),
            to_micros(self._clock.now()),
            row["id"],
        )
        return replace(_turn(tx, row["id"]), waited=waited(row))

    def _start(self, tx: Transaction, session_id: str) -> Turn | None:
        now, turn_id = self._clock.now(), self._make_id()
        claimed = inbox.claim(tx, session_id, turn_id, inbox.pending(tx, session_id), now)
        if claimed is None:
            return None
        placed, route = claimed
        tx.execute(
            """
            INSERT INTO turns (id, session_id, channel, route, state, attempt, first_seq, started_at, updated_at)
            VALUES (?, ?, ?, ?, 'running', 1, ?, ?, ?)
            """,
            turn_id,
            session_id,
            route.channel,
            dump(ROUTE, route),
            placed[0].seq,
            to_micros(now),
            to_micros(now),
        )
        return _turn(tx, turn_id)

    async def _write(
        self,
        turn: Turn,
        lease: Lease,
        messages: Sequence[Message],
        usage: Usage | None,
        then: Callable[[Transaction], None],
    ) -> None:
        added = await self._counted(messages, turn.id)

        def work(tx: Transaction) -> None:
            _check(tx, turn, lease)
            if added:
                appending.append(tx, turn.session_id, added, self._clock.now())
            tx.execute("UPDATE turns SET waiting_for = NULL WHERE id = ? AND waiting_for IS NOT NULL", turn.id)
            if usage is not None:
                _store_usage(tx, turn, usage, to_micros(self._clock.now()))
            then(tx)

        await self._database.write(work)

    def _end(self, tx: Transaction, turn: Turn, state: TurnState, deliveries: Sequence[NewDelivery]) -> None:
        self._set_state(tx, turn, state)
        for delivery in deliveries:
            outbox_rows.enqueue(tx, delivery, self._make_id(), self._clock.now())

    def _set_state(self, tx: Transaction, turn: Turn, state: TurnState) -> None:
        now = to_micros(self._clock.now())
        tx.execute("UPDATE turns SET state = ?, updated_at = ? WHERE id = ?", state, now, turn.id)


def _check(tx: Transaction, turn: Turn, lease: Lease) -> None:
    """Raise `LeaseLost` unless the lease is held and the turn still runs; a deleted session's turn does not."""
    check_lease(tx, lease, session_lease(turn.session_id))
    if tx.one("SELECT 1 FROM turns WHERE id = ? AND state = 'running'", turn.id) is None:
        raise LeaseLost(lease.name)


def _store_usage(tx: Transaction, turn: Turn, usage: Usage, now: int) -> None:
    tx.execute(
        """
        INSERT INTO usage (turn_id, number, session_id, provider, model, input_tokens, cached_tokens, written_tokens,
                           output_tokens, counted_tokens, created_at)
        SELECT ?, coalesce(max(number), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM usage WHERE turn_id = ?
        """,
        turn.id,
        turn.session_id,
        usage.provider,
        usage.model,
        usage.input_tokens,
        usage.cached_tokens,
        usage.written_tokens,
        usage.output_tokens,
        usage.counted_tokens,
        now,
        turn.id,
    )


def _turn(tx: Transaction, turn_id: str) -> Turn:
    row: Any = tx.one("SELECT * FROM turns WHERE id = ?", turn_id)
    key = SessionKey.parse(header_row(tx, row["session_id"])["key"])
    return Turn(
        id=row["id"],
        session_id=row["session_id"],
        key=key,
        # A damaged route costs the mark of which message is answered, not the answer.
        route=parsed_json(ROUTE, row["route"]) or Route(key.channel, key.chat_id, key.thread),
        attempt=row["attempt"],
        state=TurnState(row["state"]),
        started_at=from_micros(row["started_at"]),
        first_seq=row["first_seq"],
        stop_requested_by=row["stop_requested_by"],
    )
