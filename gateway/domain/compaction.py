"""What is known of the rows that a replay no longer begins with: a summary, and facts that were taken from them.

It is kept on the session's header. The names of its fields are those that older stores use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionState:
    """The state after the latest compaction. `created_at` is an ISO time; `trimmed` says that rows went unsummarised.

    `working_state` maps a heading (`files`, `commands`, `artifacts`, `tools`, `earlier`) to its lines.
    """

    summary_text: str = ""
    working_state: Mapping[str, Sequence[str]] = field(default_factory=dict)
    user_messages: Sequence[str] = ()
    user_messages_dropped: int = 0
    created_at: str = ""
    model_used: str = ""
    trimmed: bool = False

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
        }


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, Sequence) else ()
