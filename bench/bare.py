"""The floor of what stores: bare durable transactions, one after the other, with nothing of ours around them."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

from gateway.store.sqlite.connection import connect

BARE = "one bare durable transaction"


def bare_transactions(path: Path, count: int) -> Sequence[float]:
    """Return the seconds that each of so many transactions took, in a database of their own."""
    connection: sqlite3.Connection = connect(path)
    connection.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, body TEXT)")
    times = []
    for _ in range(count):
        started = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows (body) VALUES (?)", ("x" * 400,))
        connection.execute("COMMIT")
        times.append(time.perf_counter() - started)
    connection.close()
    return times


def percentile(values: Sequence[float], share: int) -> float:
    """Return what so many hundredths of the values do not exceed."""
    below = sorted(values)
    return below[min(len(below) * share // 100, len(below) - 1)]
