"""Our own JSON lines: everything that is kept of a session, so that reading it back gives the same session.

One object a line, UTF-8. A `session` line with the header comes first, then a `row` line for each row, an `attic` line
for each row of the attic, a `media` line for each file with its bytes, and an `end` line that says how many there were
of each, and behind the last session a `file_end` line says how many sessions there were, so that a file that was cut
short is noticed, wherever the cut is. Each line names its session, so that a lost header costs its own
rows and never gives them to another session. Fields at their defaults are left out. Several sessions may follow each
other in one file. `format` grows when an older release could misread what a newer one writes.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

from gateway.ports.media import StoredMedia
from gateway.ports.sessions import Retired, SessionCopy
from gateway.store.codec import to_json
from gateway.store.jsonl.fields import encoded, encoded_moment

FORMAT = 1
FIRST_NAME = "type"
"""The name each line begins with."""
FILE_END = "file_end"
DATA_STARTS, DATA_ENDS = b',"data":"', b'"}\n'
"""What stands around the bytes of a file, which end its line."""


Files = AsyncIterable[tuple[StoredMedia, AsyncIterator[bytes]]]
"""Files with their bytes, one after the other: the bytes of each are to be read before the next is asked for."""


async def pieces(copy: SessionCopy, files: Files | None = None) -> AsyncGenerator[str, None]:
    """Yield the text of a session in pieces that are joined without anything between: lines, and parts of long ones."""
    for line in _rows(copy):
        yield line
    count = 0
    if files is not None:
        async for stored, chunks in files:
            async with aclosing(_file(copy.session.id, stored, chunks)) as parts:
                async for part in parts:
                    yield part
            count += 1
    yield _line("end", session=copy.session.id, rows=len(copy.rows), attic=len(copy.attic), media=count)


def closing(sessions: int) -> str:
    """Return the line that ends a file of so many sessions."""
    return _line(FILE_END, sessions=sessions)


def _rows(copy: SessionCopy) -> Iterator[str]:
    id = copy.session.id
    yield _line("session", format=FORMAT, **encoded(copy.session))
    for row in copy.rows:
        yield _line("row", session=id, **encoded(row))
    for retired in copy.attic:
        yield _line("attic", session=id, **_retired(retired))


def _line(kind: str, /, **rest: Any) -> str:
    return to_json({FIRST_NAME: kind, **rest}) + "\n"


def _retired(retired: Retired) -> dict[str, Any]:
    return {"reason": retired.reason, "moved_at": encoded_moment(retired.moved_at), **encoded(retired.row)}


async def _file(id: str, stored: StoredMedia, chunks: AsyncIterator[bytes]) -> AsyncGenerator[str, None]:
    meta = stored.meta
    facts = {
        "ref": stored.ref,
        "meta": {"session_id": meta.session_id, "kind": meta.kind, "name": meta.name, "mime": meta.mime},
        "size_bytes": stored.size_bytes,
        "sha256": stored.sha256,
    }
    yield _line("media", session=id, **facts).removesuffix("}\n") + DATA_STARTS.decode()
    left = b""
    async for chunk in chunks:
        left += chunk
        # Base64 knows no pieces but of three bytes.
        ready = len(left) - len(left) % 3
        yield base64.b64encode(left[:ready]).decode()
        left = left[ready:]
    yield base64.b64encode(left).decode() + DATA_ENDS.decode()
