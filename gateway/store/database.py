"""The small database every port's module is written on: transactions as functions of a `Transaction`.

One body of SQL serves both engines, in the dialect they share, with `?` for parameters. A function given to `write`
may run twice (a batch that failed is tried again one by one), so it touches nothing but its transaction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

Row = Mapping[str, Any]
T = TypeVar("T")


class Transaction(ABC):
    """What a unit of work may do."""

    @abstractmethod
    def execute(self, sql: str, *values: Any) -> int:
        """Run a statement and return how many rows it changed."""

    @abstractmethod
    def all(self, sql: str, *values: Any) -> Sequence[Row]:
        """Run a query, or a statement with RETURNING, and return its rows."""

    @abstractmethod
    def values(self, sql: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Run a query and return its rows as plain values, in the order of its columns."""

    def one(self, sql: str, *values: Any) -> Row | None:
        """Return the first row, or None."""
        rows = self.all(sql, *values)
        return rows[0] if rows else None


class Database(ABC):
    """Runs units of work off the event loop. Safe to share between tasks.

    What may heal (a full disk, a lock that is not let go) is raised as `Unavailable`.
    """

    @property
    @abstractmethod
    def fault(self) -> str | None:
        """Why nothing can be written any more until the process starts anew, or None."""

    @abstractmethod
    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction and return its result once it is durable.

        An exception undoes it and is raised.
        """

    @abstractmethod
    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on a consistent view; it must not write."""

    @abstractmethod
    async def close(self) -> None:
        """Finish what was begun and close; later calls raise `RuntimeError`."""
