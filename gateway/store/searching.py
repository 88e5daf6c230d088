"""Search over titles and rows, by SQLite's full-text index."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.domain.errors import Refused
from gateway.domain.searching import Snippets, Term, searchable, terms
from gateway.domain.text import whole
from gateway.ports.sessions import Found
from gateway.store.database import Transaction
from gateway.store.headers import decode_header

_ROWS = """
SELECT sessions.*, hits.seq AS hit_seq, hits.content AS hit_content FROM (
    SELECT messages.session_id, messages.seq, messages_fts.rank AS rank, CAST(messages.content AS TEXT) AS content
    FROM messages_fts JOIN messages ON messages.id = messages_fts.rowid
    WHERE messages_fts MATCH ? AND NOT EXISTS (
        SELECT 1 FROM message_marks AS marks
        WHERE marks.session_id = messages.session_id AND marks.seq = messages.seq)
    ORDER BY messages_fts.rank LIMIT ?
) AS hits JOIN sessions ON sessions.id = hits.session_id
WHERE sessions.deleted_at IS NULL ORDER BY hits.rank
"""


_TITLES = """
SELECT sessions.* FROM titles_fts JOIN sessions ON sessions.number = titles_fts.rowid
WHERE titles_fts MATCH ? AND sessions.deleted_at IS NULL ORDER BY titles_fts.rank LIMIT ?
"""


def search(tx: Transaction, words: str, limit: int) -> Sequence[Found]:
    """Return sessions whose title holds all the words, then the rows that do, best first."""
    wanted = terms(whole(words))
    if not wanted:
        raise Refused(f"expected at least one word to search for, got {words!r}")
    phrases = " ".join(map(_phrase, wanted))
    titled = _titles(tx, phrases, limit)
    rows = tx.all(_ROWS, phrases, limit - len(titled)) if len(titled) < limit else ()
    snippets = Snippets(wanted)
    return [
        *titled,
        *(
            Found(session=decode_header(row), seq=row["hit_seq"], snippet=snippets.of(row["hit_content"]))
            for row in rows
        ),
    ]


def _titles(tx: Transaction, phrases: str, limit: int) -> list[Found]:
    found = tx.all(_TITLES, phrases, limit)
    return [Found(session=decode_header(row), seq=None, snippet=row["title"]) for row in found]


def _phrase(term: Term) -> str:
    """Return a term as a quoted phrase; nothing in it is syntax."""
    return '"' + searchable(term.text).replace('"', '""') + '"' + ("*" if term.is_prefix else "")
