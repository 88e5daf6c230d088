"""What a turn says in its chat, as a delivery that is named within the turn."""

from __future__ import annotations

from gateway.domain.outbound import Choice, NewDelivery, Outbound
from gateway.domain.turn import Turn


def delivery(turn: Turn, what: str, text: str, choices: tuple[Choice, ...] = ()) -> NewDelivery:
    """Return a delivery of the turn; `what` names it within the turn, so that a repeat is none."""
    return NewDelivery(
        route=turn.route,
        outbound=Outbound(text=text, choices=choices),
        dedupe_key=f"turn:{turn.id}:{what}",
        session_id=turn.session_id,
        turn_id=turn.id,
    )
