"""The one thread that writes, with group commit.

A durable commit costs a disk flush however much it holds, so whatever waits is committed together: one flush for all,
and nobody is told before the flush. Where a unit of work raises, all of it is done again, each in a savepoint of its
own. Writers that wait for one another's flush are what makes a store slow under load; here the load itself makes the
batches larger.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.domain.errors import Unavailable
from gateway.store.database import Transaction
from gateway.store.sqlite.connection import SqliteTransaction

MOST_PER_COMMIT = 256

BeforeCommit = Callable[[sqlite3.Connection], None]


@dataclass(slots=True)
class _Job:
    work: Callable[[Transaction], Any]
    done: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = field(default=None)


class Writer:
    """Takes units of work from any task of one event loop and commits them in the order they came."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        check: Callable[[], None] = lambda: None,
        before_commit: BeforeCommit = lambda connection: None,
    ) -> None:
        """Connect in the thread.

        `check` is called before each transaction, and raises `Unavailable` to refuse it; `before_commit` is called at
        the end of each, and belongs to it.
        """
        self._connect = connect
        self._check = check
        self._before_commit = before_commit
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="sqlite writer", daemon=True)
        self._thread.start()

    async def submit(self, work: Callable[[Transaction], Any]) -> Any:
        """Return the result of `work` once it is committed. Cancelling the wait does not undo the work."""
        if self._closed:
            raise RuntimeError("the store is closed")
        if self._fault is not None:
            raise _ended(self._fault)
        job = _Job(work, self._loop.create_future())
        self._jobs.put(job)
        return await job.done

    @property
    def fault(self) -> str | None:
        """What ended the thread before its time, or None while it works."""
        return None if self._fault is None else f"the store's writer has ended: {self._fault}"

    async def close(self) -> None:
        """Commit what waits, then end the thread."""
        if not self._closed:
            self._closed = True
            self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            connection = self._connect()
        except BaseException as error:  # whoever waits is told; there is nobody else to tell
            self._give_up(error, [])
            return
        batch: list[_Job] = []
        try:
            while batch := self._take():
                self._commit(connection, batch)
                self._loop.call_soon_threadsafe(_resolve, batch)
        except BaseException as error:  # the same
            self._give_up(error, batch)
        finally:
            connection.close()

    def _give_up(self, error: BaseException, batch: Sequence[_Job]) -> None:
        """Tell everybody who waits, and whoever comes later, that nothing is written any more."""
        self._fault = error
        left = list(batch)
        while not self._jobs.empty():
            if (job := self._jobs.get_nowait()) is not None:
                left.append(job)
        for job in left:
            job.error = _ended(error)
        self._loop.call_soon_threadsafe(_resolve, left)

    def _take(self) -> list[_Job]:
        first = self._jobs.get()
        if first is None:
            return []
        batch = [first]
        while len(batch) < MOST_PER_COMMIT:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                self._jobs.put(None)
                break
            batch.append(job)
        return batch

    def _commit(self, connection: sqlite3.Connection, batch: Sequence[_Job]) -> None:
        try:
            connection.execute("BEGIN IMMEDIATE")
            # After the lock, which may have been waited for: the file may have been replaced meanwhile.
            self._check()
        except (sqlite3.Error, Unavailable) as error:
            _roll_back(connection)
            # Nobody of the batch can write now, and each would wait as long to learn it.
            for job in batch:
                job.error = error
            return
        if len(batch) == 1:
            _alone(connection, batch[0], self._before_commit)
            return
        try:
            if not _all_well(connection, batch, self._before_commit):
                connection.execute("BEGIN IMMEDIATE")
                _together(connection, batch, self._before_commit)
        except sqlite3.Error:
            # A full disk or a failed flush undoes the whole batch: find out which of them can be kept, one by one.
            _roll_back(connection)
            for job in batch:
                _begin_alone(connection, job, self._before_commit)


def _all_well(connection: sqlite3.Connection, batch: Sequence[_Job], before_commit: BeforeCommit) -> bool:
    """Commit the batch without savepoints, which cost much; return False, with nothing done, if one raises."""
    transaction = SqliteTransaction(connection)
    for job in batch:
        job.result = job.error = None
        try:
            job.result = job.work(transaction)
        except BaseException:  # it raises once more where it can be undone by itself, and that is handed on
            _roll_back(connection)
            return False
    before_commit(connection)
    connection.execute("COMMIT")
    return True


def _together(connection: sqlite3.Connection, batch: Sequence[_Job], before_commit: BeforeCommit) -> None:
    transaction = SqliteTransaction(connection)
    for job in batch:
        job.result = job.error = None
        connection.execute("SAVEPOINT job")
        try:
            job.result = job.work(transaction)
        except BaseException as error:  # handed to whoever waits for this job; the thread serves the others
            if not connection.in_transaction:
                raise sqlite3.OperationalError("the transaction was undone") from error
            job.error = error
            connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")
    before_commit(connection)
    connection.execute("COMMIT")


def _begin_alone(connection: sqlite3.Connection, job: _Job, before_commit: BeforeCommit) -> None:
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.Error as error:
        job.error = error
    else:
        _alone(connection, job, before_commit)


def _alone(connection: sqlite3.Connection, job: _Job, before_commit: BeforeCommit) -> None:
    job.result = job.error = None
    try:
        job.result = job.work(SqliteTransaction(connection))
        before_commit(connection)
        connection.execute("COMMIT")
    except BaseException as error:  # handed to whoever waits for this job; the thread serves the others
        job.error = error
        _roll_back(connection)


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _resolve(batch: Sequence[_Job]) -> None:
    for job in batch:
        if job.done.done():
            continue
        if job.error is not None:
            job.done.set_exception(job.error)
        else:
            job.done.set_result(job.result)


def _ended(error: BaseException) -> Unavailable:
    unavailable = Unavailable(f"the store's writer has ended: {error}")
    unavailable.__cause__ = error
    return unavailable
