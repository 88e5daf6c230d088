"""What is known of the rows that a replay no longer begins with: a summary, and facts that were taken from them.

It is kept on the session's header. The names of its fields are those that older stores use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from gateway.domain.decoration import neutral
from gateway.domain.message import TOKENS_PER_MESSAGE, Kind, Message, Role

_INTRODUCTION = "[compacted: the earlier part of this conversation, summed up]"
_CONTRACT = (
    "[compacted: end. Go on from here as if you remembered it all: do not ask again for what it says, do not repeat it "
    "and do not mention it; what a file held then is to be read again before it is relied on.]"
)
"""Both are single lines that `gateway.domain.sanitize` knows, so that a model's echo of them reaches nobody."""

HEADINGS = {
    "files": "Files that were written, newest first",
    "commands": "Latest commands, newest last",
    "artifacts": "What was published, newest first",
    "tools": "Tools that were used",
    "earlier": "Known from before",
}
PICTURE = "[image]"
"""What stands for a picture among the words of a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionState:
    """The state after the latest compaction; `trimmed` says that its rows went without a summary.

    `created_at` is an ISO time. `user_messages` are raw words, oldest first; `user_messages_dropped` older ones are not
    among them. `working_state` maps a heading (`files`, `commands`, `artifacts`, `tools`, `earlier`) to its lines.
    """

    summary_text: str = ""
    working_state: Mapping[str, Sequence[str]] = field(default_factory=dict)
    user_messages: Sequence[str] = ()
    user_messages_dropped: int = 0
    created_at: str = ""
    model_used: str = ""
    trimmed: bool = False
    question: str = ""
    """What the person asked last, whole, where the rows that are left begin after it."""

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Self | None:
        """Return the state a header holds, or None for none; a field of another shape costs itself."""
        if not stored:
            return None
        state = stored.get("working_state")
        dropped = stored.get("user_messages_dropped")
        return cls(
            summary_text=_text(stored.get("summary_text")),
            working_state={str(name): _texts(lines) for name, lines in state.items()}
            if isinstance(state, Mapping)
            else {},
            user_messages=_texts(stored.get("user_messages")),
            user_messages_dropped=dropped if isinstance(dropped, int) and dropped > 0 else 0,
            created_at=_text(stored.get("created_at")),
            model_used=_text(stored.get("model_used")),
            trimmed=stored.get("trimmed") is True,
            question=_text(stored.get("question")),
        )

    def as_stored(self) -> dict[str, Any]:
        """Return the state as plain data for the header."""
        return {
            "summary_text": self.summary_text,
            "working_state": {name: list(lines) for name, lines in self.working_state.items()},
            "user_messages": list(self.user_messages),
            "user_messages_dropped": self.user_messages_dropped,
            "created_at": self.created_at,
            "model_used": self.model_used,
            "trimmed": self.trimmed,
            **({"question": self.question} if self.question else {}),
        }


def block(state: CompactionState, count: Callable[[str], int]) -> Message:
    """Return what the model is told of earlier rows: one user message that stands before those that are sent.

    Whatever is quoted in it was written by people, models and tools, so none of it may look like a line of ours: they
    could end the block early and go on in our name.
    """
    text = "\n\n".join(piece for piece in (_INTRODUCTION, *_pieces(state), _CONTRACT) if piece)
    return Message(role=Role.USER, kind=Kind.COMPACTED, content=text, tokens=count(text) + TOKENS_PER_MESSAGE)


def _pieces(state: CompactionState) -> Iterator[str]:
    # Other line ends than \n become one first, since only what stands after that is looked at.
    yield neutral("\n".join(state.summary_text.splitlines())).strip()
    for name in [*HEADINGS, *(name for name in state.working_state if name not in HEADINGS)]:
        if lines := state.working_state.get(name):
            yield _listed(HEADINGS.get(name, name), lines)
    dropped = state.user_messages_dropped
    if state.user_messages or dropped:
        omitted = f" ({dropped} older ones are omitted)" if dropped else ""
        yield _listed(f"What people wrote, in their own words, newest last{omitted}", state.user_messages)
    if state.question:
        yield f"## What was asked last, and is being worked on\n{neutral(state.question)}"


def _listed(heading: str, lines: Sequence[str]) -> str:
    return "\n".join([f"## {' '.join(heading.split())}", *map(item, lines)])


def item(line: str) -> str:
    """Return a text as one line of a list in the block; that a message had a picture is our own mark in it."""
    line = " ".join(line.split())
    return f"- {line if line.startswith(PICTURE) else neutral(line)}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, Sequence) else ()
