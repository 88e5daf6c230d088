"""Our own JSON lines: everything that is kept of a session, so that reading it back gives the same session.

One object a line, UTF-8. A `session` line with the header comes first, then a `row` line for each row, an `attic` line
for each row of the attic, a `media` line for each file with its bytes, and an `end` line that says how many there were
of each, so that a file that was cut short is noticed. Each line names its session, so that a lost header costs its own
rows and never gives them to another session. Fields at their defaults are left out. Several sessions may follow each
other in one file. `format` grows when an older release could misread what a newer one writes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any

from gateway.ports.media import StoredMedia
from gateway.ports.sessions import Retired, SessionCopy
from gateway.store.codec import to_json
from gateway.store.export.fields import encoded, encoded_moment

FORMAT = 1
FIRST_NAME = "type"
"""The name each line begins with."""


def lines(copy: SessionCopy, media: Iterable[tuple[StoredMedia, bytes]] = ()) -> Iterator[str]:
    """Yield the lines of a session with their line ends; `media` is taken one file at a time."""
    id = copy.session.id
    yield _line("session", format=FORMAT, **encoded(copy.session))
    for row in copy.rows:
        yield _line("row", session=id, **encoded(row))
    for retired in copy.attic:
        yield _line("attic", session=id, **_retired(retired))
    files = 0
    for stored, data in media:
        yield _line("media", session=id, **_file(stored, data))
        files += 1
    yield _line("end", session=id, rows=len(copy.rows), attic=len(copy.attic), media=files)


def _line(kind: str, /, **rest: Any) -> str:
    return to_json({FIRST_NAME: kind, **rest}) + "\n"


def _retired(retired: Retired) -> dict[str, Any]:
    return {"reason": retired.reason, "moved_at": encoded_moment(retired.moved_at), **encoded(retired.row)}


def _file(stored: StoredMedia, data: bytes) -> dict[str, Any]:
    meta = stored.meta
    return {
        "ref": stored.ref,
        "meta": {"session_id": meta.session_id, "kind": meta.kind, "name": meta.name, "mime": meta.mime},
        "size_bytes": stored.size_bytes,
        "sha256": stored.sha256,
        "data": base64.b64encode(data).decode(),
    }
