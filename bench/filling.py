"""Full stores: written past the store's own verbs and without its durability, in the time a bench has."""

from __future__ import annotations

import itertools
import json
import random
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from functools import cache
from pathlib import Path

from gateway.store import Store, open_store
from gateway.store.sqlite.connection import connect
from gateway.store.sqlite.migrate import prepare
from gateway.wakeups.clock import SystemClock

MOMENT = 1_780_000_000_000_000
"""When all of it was written, in microseconds."""

_SESSION = """
INSERT INTO sessions (id, key, channel, workspace, title, title_source, preview, preview_role, message_count, last_seq,
                      created_at, updated_at, pinned, origin, origin_kind)
VALUES (?, ?, ?, '/srv/work', ?, ?, ?, 'user', ?, ?, ?, ?, ?, ?, 'slack')
"""
_MESSAGE = """
INSERT INTO messages (session_id, seq, v, role, kind, content, body, turn_id, tokens, created_at)
VALUES (?, ?, 1, ?, 'chat', ?, ?, ?, 16, ?)
"""
_ANSWERED = (
    # One turn for each row of a person, with what led to it and what came of it: just now, or it would be forgotten.
    """
    INSERT INTO turns (id, session_id, channel, route, state, attempt, first_seq, started_at, updated_at)
    SELECT turn_id, session_id, channel, json_object('channel', channel, 'chat_id', substr(key, length(channel) + 2)),
           'done', 1, seq, messages.created_at, messages.created_at
    FROM messages JOIN sessions ON sessions.id = session_id WHERE role = 'user'
    """,
    """
    INSERT INTO inbox (channel, dedupe_key, session_id, turn_id, state, sent_at, accepted_at, tokens)
    SELECT channel, 'msg:' || id, session_id, id, 'done', started_at, strftime('%s', 'now') * 1000000, 16 FROM turns
    """,
    """
    INSERT INTO outbox (id, dedupe_key, lane, channel, route, session_id, turn_id, state, created_at, done_at)
    SELECT turns.id, 'turn:' || turns.id || ':answer', key, turns.channel, route, session_id, turns.id, 'done',
           started_at, strftime('%s', 'now') * 1000000
    FROM turns JOIN sessions ON sessions.id = session_id
    """,
    "INSERT INTO outbox_parts (delivery_id, number, state, ref) SELECT id, 0, 'done', '{\"id\":\"1\"}' FROM outbox",
    """
    INSERT INTO leases (name, holder, token, expires_at)
    SELECT 'session:' || id, 'gateway:1', 1, 0 FROM sessions UNION SELECT 'lane:' || lane, 'gateway:1', 1, 0 FROM outbox
    """,
    """
    INSERT INTO usage (turn_id, number, session_id, provider, model, input_tokens, cached_tokens, written_tokens,
                       output_tokens, created_at)
    SELECT id, 1, session_id, 'echo', 'echo', 100, 0, 0, 20, started_at FROM turns
    """,
)
_SENDER = '{"sender":{"id":"U0ABCDEF1","name":"Alice"}}'


class Words:
    """Sentences of a vocabulary in which few words are common and most are rare, the same ones at each run."""

    common = "w2 w5"
    rare = "w40 w5c"

    def __init__(self) -> None:
        self._chance = random.Random(1)

    def text(self) -> str:
        """Return sixteen words."""
        halves = _sentences()
        return f"{self._chance.choice(halves)} {self._chance.choice(halves)}"


@cache
def _sentences(vocabulary: int = 20_000, sentences: int = 20_000) -> Sequence[str]:
    chance = random.Random(2)
    words = [f"w{number:x}" for number in range(vocabulary)]
    weights = list(itertools.accumulate(1 / (place + 10) for place in range(vocabulary)))
    return [" ".join(chance.choices(words, cum_weights=weights, k=8)) for _ in range(sentences)]


def session_id(number: int) -> str:
    """Return the id of a session that `fill` made."""
    return f"{number:032x}"


def fill(path: Path, *, sessions: int, rows_each: int, channel: str = "slack") -> None:
    """Add sessions to a store, each with rows of a person and the bot in turns."""
    prepare(path)
    words = Words()
    with closing(connect(path)) as connection:
        first = connection.execute("SELECT count(*) FROM sessions").fetchone()[0]
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA cache_size=-200000")
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute("BEGIN")
        numbers = range(first, first + sessions)
        connection.executemany(_SESSION, (_header(number, rows_each, words, channel) for number in numbers))
        for number in numbers:
            connection.executemany(_MESSAGE, _rows(number, rows_each, words))
        connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('rebuild')")
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def fill_answered(path: Path, *, sessions: int, rows_each: int, channel: str) -> None:
    """Fill an empty store, and add what a gateway writes besides the rows until all of them are answered."""
    fill(path, sessions=sessions, rows_each=rows_each, channel=channel)
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("BEGIN")
        for statement in _ANSWERED:
            connection.execute(statement)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _header(number: int, rows: int, words: Words, channel: str) -> tuple[object, ...]:
    origin = {
        "kind": "slack",
        "tenant": "T0ABCD",
        "chat_id": f"C{number}",
        "chat_name": "general",
        "actor": "U0ABCDEF1",
    }
    text = words.text()
    moment = MOMENT + number
    id, key = session_id(number), f"{channel}:C{number}"
    source = 2 if number % 2 else 1
    is_pinned = number % 100 == 0
    return (
        id,
        key,
        channel,
        f"Letter number {number} from Rome",
        source,
        text,
        rows,
        rows,
        moment,
        moment,
        is_pinned,
        json.dumps(origin),
    )


def _rows(number: int, rows: int, words: Words) -> Iterator[tuple[object, ...]]:
    id = session_id(number)
    for seq in range(1, rows + 1):
        role, body = ("user", _SENDER) if seq % 2 else ("assistant", None)
        yield (id, seq, role, words.text(), body, f"{number:016x}{(seq + 1) // 2:016x}", MOMENT + seq)


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Store]:
    """Open the store at a path as a gateway does, but for the token counter."""
    numbers = random.Random()

    def make_id() -> str:
        return f"{numbers.getrandbits(128):032x}"

    url = f"sqlite:///{path}"
    async with open_store(url, clock=SystemClock(), make_id=make_id, count=lambda text: len(text) // 4) as store:
        yield store


def bare(path: Path) -> sqlite3.Connection:
    """Return a connection with the store's pragmas and nothing else of the store."""
    connection = connect(path)
    connection.row_factory = None
    return connection
