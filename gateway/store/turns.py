"""Turns in SQL: each verb is one transaction whose first statement checks the lease."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from gateway.domain.errors import Refused
from gateway.domain.inbound import Inbound, as_row
from gateway.domain.keys import SessionKey
from gateway.domain.message import MediaRef, Message
from gateway.domain.outbound import NewDelivery
from gateway.domain.turn import RESUME, Backlog, Joined, Stopping, Turn, TurnState, Usage, Waiting, stop_row
from gateway.ports.clock import Clock
from gateway.ports.leases import Lease, session_lease
from gateway.ports.sessions import NewSession
from gateway.ports.tokens import TokenCounter
from gateway.ports.turns import Turns
from gateway.store import appending, inbox, leases, outbox_rows, rows, stopping, turn_rows
from gateway.store.codec import to_json, to_micros
from gateway.store.counting import RowCounter
from gateway.store.database import Database, Transaction
from gateway.store.guard import check_lease
from gateway.store.headers import IdMaker
from gateway.store.turn_rows import check
from gateway.store.waiting import DUE, UNFINISHED, has_work, is_resumable, set_down


class SqlTurns(Turns):
    """Keeps the inbox and the turns in a `Database`. Tokens are counted before a row is stored, off the event loop."""

    def __init__(self, database: Database, clock: Clock, make_id: IdMaker, count: TokenCounter) -> None:
        self._database = database
        self._clock = clock
        self._make_id = make_id
        self._counted = RowCounter(count)

    async def accept(self, inbound: Inbound, new: NewSession, *, most_waiting: int | None = None) -> str | None:
        (row,) = await self._counted([as_row(inbound)])
        tokens = row.tokens or 0
        return await self._database.write(
            lambda tx: inbox.store(tx, inbound, tokens, new, self._make_id, self._clock.now(), most_waiting)
        )

    async def begin(self, session_id: str, lease: Lease, *, suspects: bool = True) -> Turn | None:
        def work(tx: Transaction) -> Turn | None:
            check_lease(tx, lease, session_lease(session_id))
            unfinished = tx.one(UNFINISHED, session_id)
            if unfinished is None:
                return self._start(tx, session_id)
            now = self._clock.now()
            if not is_resumable(tx, unfinished, to_micros(now)):
                return None
            if not suspects and turn_rows.is_suspect(unfinished):
                return replace(turn_rows.decode_turn(tx, unfinished), state=TurnState.WAITING)
            return turn_rows.resume(tx, unfinished, now)

        return await self._database.write(work)

    async def join(self, turn: Turn, lease: Lease) -> Joined:
        def work(tx: Transaction) -> Joined:
            check(tx, turn, lease)
            waiting = inbox.pending(tx, turn.session_id)
            claimed = inbox.claim(tx, turn.session_id, turn.id, waiting, self._clock.now())
            if claimed is None:
                return Joined(turn, ())
            placed, newest = claimed
            return Joined(turn_rows.move(tx, turn, newest), placed)

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
            # One that is asked to stop may be set down, to be ended by the next process; it may not wait any longer.
            check(tx, turn, lease, even_stopped=waiting.reason == RESUME)
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

    async def fail(
        self,
        turn: Turn,
        lease: Lease,
        outcome: TurnState,
        deliveries: Sequence[NewDelivery],
        *,
        rows: Sequence[Message] = (),
        usage: Usage | None = None,
    ) -> None:
        marks = await self._counted([stop_row()], turn.id) if outcome is TurnState.STOPPED else ()

        def then(tx: Transaction) -> None:
            if outcome is TurnState.STOPPED:
                self._take_stopped(tx, turn, marks)
            self._end(tx, turn, outcome, deliveries)

        even_stopped = outcome in (TurnState.STOPPED, TurnState.SET_ASIDE)
        await self._write(turn, lease, rows, usage, then, even_stopped=even_stopped)

    async def request_stop(self, ref: str | SessionKey, by: str, *, event: Inbound | None = None) -> Stopping:
        return await self._database.write(lambda tx: stopping.request(tx, ref, by, event, self._clock.now()))

    async def backlog(self, session_id: str) -> Backlog:
        return await self._database.read(lambda tx: stopping.backlog(tx, session_id))

    async def list(
        self, *, state: TurnState | None = None, session_id: str | None = None, limit: int = 100
    ) -> Sequence[Turn]:
        return await self._database.read(lambda tx: turn_rows.listed(tx, state, session_id, limit))

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
            check(tx, turn, lease)
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

    def _start(self, tx: Transaction, session_id: str) -> Turn | None:
        now, turn_id = self._clock.now(), self._make_id()
        waiting = inbox.pending(tx, session_id)
        # What was stopped is ended first, by itself, so that whoever asked for that is told.
        stopped = stopping.stopped(waiting)
        claimed = inbox.claim(tx, session_id, turn_id, stopped or waiting, now)
        if claimed is None:
            return None
        placed, newest = claimed
        turn = turn_rows.start(tx, session_id, turn_id, newest, placed[0].seq, now)
        if not stopped:
            return turn
        by = stopped[-1]["stopped_by"]
        tx.execute("UPDATE turns SET stop_requested_by = ? WHERE id = ?", by, turn.id)
        return replace(turn, stop_requested_by=by)

    async def _write(
        self,
        turn: Turn,
        lease: Lease,
        messages: Sequence[Message],
        usage: Usage | None,
        then: Callable[[Transaction], None],
        *,
        even_stopped: bool = False,
    ) -> None:
        added = await self._counted(messages, turn.id)

        def work(tx: Transaction) -> None:
            check(tx, turn, lease, even_stopped=even_stopped)
            if added:
                appending.append(tx, turn.session_id, added, self._clock.now())
            tx.execute("UPDATE turns SET waiting_for = NULL WHERE id = ? AND waiting_for IS NOT NULL", turn.id)
            if usage is not None:
                turn_rows.store_usage(tx, turn, usage, self._clock.now())
            then(tx)

        await self._database.write(work)

    def _take_stopped(self, tx: Transaction, turn: Turn, marks: Sequence[Message]) -> None:
        stopped = stopping.stopped(inbox.pending(tx, turn.session_id))
        inbox.claim(tx, turn.session_id, turn.id, stopped, self._clock.now())
        appending.append(tx, turn.session_id, marks, self._clock.now())

    def _end(self, tx: Transaction, turn: Turn, state: TurnState, deliveries: Sequence[NewDelivery]) -> None:
        turn_rows.set_state(tx, turn, state, self._clock.now())
        for delivery in deliveries:
            outbox_rows.enqueue(tx, delivery, self._make_id(), self._clock.now())
