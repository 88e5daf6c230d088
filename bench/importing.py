"""Taking over many small sessions of nanobot, each of which is a file there and a transaction here."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from bench.filling import Words, bare
from bench.pairs import medians
from bench.row import Row
from gateway.app.moving import import_all
from gateway.config.load import load_settings
from gateway.store.nanobot.reader import NanobotSource

WHEN = "2026-07-01T10:00:00.250000"


async def measure_importing(*, sessions: int = 10_000, rows_each: int = 4, rounds: int = 1) -> Sequence[Row]:
    """Measure an import; the floor reads and decodes the same files, and writes each in one bare transaction.

    What only ours does is what an import is for: repairing, counting tokens, making titles, indexing words.
    """
    with tempfile.TemporaryDirectory() as folder:
        home, numbers = Path(folder) / "nanobot", itertools.count()
        _lay_out(home / "sessions", sessions, rows_each)

        async def ours() -> float:
            return await _imported(home / "sessions", Path(folder) / f"ours-{next(numbers)}", sessions)

        async def floor() -> float:
            path = Path(folder) / f"floor-{next(numbers)}.db"
            return await asyncio.to_thread(_read_and_written, home / "sessions", path)

        times = await medians(rounds, ours, floor)
        rates = " and ".join(f"{sessions / seconds:,.0f}" for seconds in times)
        return [
            Row(
                name=f"import {sessions:,} nanobot sessions of {rows_each} rows, each ({rates} a second)",
                ours=1000 * times[0] / sessions,
                floor=1000 * times[1] / sessions,
                unit="ms",
                floor_is="reading and decoding them, and one bare durable transaction each",
            )
        ]


def _lay_out(folder: Path, sessions: int, rows_each: int) -> None:
    folder.mkdir(parents=True)
    words = Words()
    for number in range(sessions):
        key = f"slack:C{number}"
        name = base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")
        lines = [_head(key), *_rows(rows_each, words)]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _head(key: str) -> dict[str, object]:
    times = {"created_at": WHEN, "updated_at": WHEN}
    return {"_type": "metadata", "key": key, **times, "metadata": {}, "last_consolidated": 0}


def _rows(count: int, words: Words) -> Iterator[dict[str, object]]:
    for place in range(count):
        yield {"role": "assistant" if place % 2 else "user", "content": words.text(), "timestamp": WHEN}


async def _imported(source: Path, data: Path, expected: int) -> float:
    settings = load_settings(None, {}, {}, data)
    started = time.perf_counter()
    reading = NanobotSource(source, zone=UTC, now=datetime.now(UTC))
    report = await import_all(settings, reading, dry_run=False, told=lambda taken: None)
    seconds = time.perf_counter() - started
    assert sum(taken.is_imported for taken in report) == expected
    return seconds


def _read_and_written(source: Path, path: Path) -> float:
    started = time.perf_counter()
    with closing(bare(path)) as connection:
        connection.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, head TEXT) WITHOUT ROWID")
        connection.execute(
            "CREATE TABLE rows (session_id TEXT, seq INTEGER, role TEXT, content TEXT, at TEXT,"
            " PRIMARY KEY (session_id, seq)) WITHOUT ROWID"
        )
        for file in sorted(source.iterdir()):
            head, *rows = [json.loads(line) for line in file.read_bytes().splitlines()]
            _write(connection, head, rows)
    return time.perf_counter() - started


def _write(connection: sqlite3.Connection, head: dict[str, str], rows: list[dict[str, str]]) -> None:
    id = head["key"]
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO sessions VALUES (?, ?)", (id, json.dumps(head)))
    values = ((id, seq, row["role"], row["content"], row["timestamp"]) for seq, row in enumerate(rows, start=1))
    connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?)", values)
    connection.execute("COMMIT")
