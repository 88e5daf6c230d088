"""Sessions of every kind, for properties of what writes and reads them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from gateway.domain.keys import SessionKey
from gateway.domain.message import Attachment, Kind, Mark, MediaRef, Message, Role, Sender, ToolCall
from gateway.domain.origins import Origin
from gateway.domain.session import Session
from gateway.domain.titles import TitleSource
from gateway.ports.media import MediaMeta, StoredMedia
from gateway.ports.sessions import Retired, SessionCopy

M = TypeVar("M")

unhurried = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For properties of whole sessions, which take long to draw on a busy machine."""

FILES = {f"m_{n}": bytes([n]) * n for n in range(4)}
"""The files that the rows of a random session name."""

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
words = st.text(characters, max_size=20)
texts = st.sampled_from(["", "a", " é\n", "\u2028\x85\r", "\U0001f600", '"\\', "<think>", "None"]) | st.text(
    characters, max_size=3
)
names = texts.map(lambda text: text or "name")
ids = st.text("abcdef0123456789", min_size=1, max_size=8)
moments = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
numbers = st.integers(0, 1 << 40)
leaves: st.SearchStrategy[Any] = st.sampled_from([None, True, 0, -1, 1 << 70, 0.1, 1e300]) | texts
values = leaves | st.lists(leaves, max_size=2) | st.dictionaries(texts, st.lists(leaves, max_size=1), max_size=2)
objects = st.dictionaries(texts, values, max_size=2)
blocks = st.lists(st.builds(lambda text: {"type": "text", "text": text}, texts) | objects, max_size=3)
keys = st.builds(
    SessionKey,
    st.text("abcdefghij-_0123456789", min_size=1, max_size=8),
    st.text("abc:%1 é\U0001f600", min_size=1, max_size=8),
    st.none() | st.text("abc:%1", min_size=1, max_size=8),
)
origins = st.builds(Origin, kind=names, label=texts, tenant=st.none() | texts, chat_id=st.none() | texts, actor=texts)
calls = st.builds(ToolCall, id=texts, name=texts, arguments=texts)
senders = st.builds(Sender, id=texts, name=texts, is_bot=st.booleans())
media = st.builds(
    MediaRef, ref=st.sampled_from(["", *FILES]), kind=names, name=texts, mime=texts, size_bytes=st.none() | numbers
)
attachments = st.builds(Attachment, kind=names, name=texts, details=st.dictionaries(texts, texts, max_size=2))


def built(make: type[M], required: dict[str, st.SearchStrategy[Any]], **fields: Any) -> st.SearchStrategy[M]:
    """Build values in which each field that is not required may be left at its default."""
    return st.fixed_dictionaries(required, optional=fields).map(lambda given: make(**given))


rows = built(
    Message,
    {"role": st.sampled_from(Role), "content": st.none() | words | blocks, "created_at": moments},
    kind=st.sampled_from(Kind),
    tool_calls=st.lists(calls, max_size=2).map(tuple),
    tool_call_id=texts,
    name=texts,
    reasoning_content=texts,
    thinking_blocks=st.lists(objects, max_size=2).map(tuple),
    v=st.integers(1, 3),
    turn_id=texts,
    provider=texts,
    model=texts,
    sender=senders,
    media=st.lists(media, max_size=2).map(tuple),
    attachments=st.lists(attachments, max_size=2).map(tuple),
    runtime_context=texts,
    tokens=numbers,
    marks=st.frozensets(st.sampled_from(Mark), max_size=2),
    extra=objects,
)
headers = built(
    Session,
    {"id": ids, "key": keys, "created_at": moments, "updated_at": moments},
    workspace=texts,
    agent=texts,
    model=texts,
    mode=texts,
    title=words,
    title_source=st.sampled_from(TitleSource),
    preview=texts,
    message_count=numbers,
    closed_at=moments,
    extra_roots=st.lists(objects, max_size=2).map(tuple),
    grants=objects,
    pinned=st.booleans(),
    archived=st.booleans(),
    origin=origins,
    parent_id=ids,
    consolidated_through=st.integers(0, 8),
    replay_from=st.integers(0, 8),
    compaction=st.builds(lambda text: {"summary_text": text, "trimmed": True}, texts) | objects,
    metadata=objects,
)


@st.composite
def copies(draw: st.DrawFn, row: st.SearchStrategy[Message] = rows) -> SessionCopy:
    """Draw a session whose rows have places, some live and some in the attic."""
    drawn = draw(st.lists(row, max_size=4))
    placed = [
        replace(one, seq=seq, event_id=draw(st.sampled_from([None, f"event:{seq}"])))
        for seq, one in enumerate(drawn, start=draw(st.integers(1, 3)))
    ]
    split = draw(st.integers(0, len(placed)))
    attic = [Retired(row=one, reason=draw(texts), moved_at=draw(moments)) for one in placed[:split]]
    return SessionCopy(session=draw(headers), rows=placed[split:], attic=attic)


def files_of(copy: SessionCopy) -> list[tuple[StoredMedia, bytes]]:
    """Return the files that the rows of a random session name, with their bytes."""
    kept = [*copy.rows, *(retired.row for retired in copy.attic)]
    refs = sorted({file.ref for row in kept for file in row.media if file.ref})
    meta = MediaMeta(session_id=copy.session.id, kind="image")
    return [
        (StoredMedia(ref=ref, meta=meta, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest()), data)
        for ref in refs
        for data in [FILES[ref]]
    ]
