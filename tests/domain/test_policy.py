"""Who may talk, decided once for everything that comes in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.domain.inbound import Inbound, InboundKind
from gateway.domain.keys import Route
from gateway.domain.message import Sender
from gateway.domain.policy import ANYONE, Missing, Rules, Verdict, decide
from tests.stores import message

DIRECT = message("hi", 1)
GROUP = replace(DIRECT, route=Route("slack", "C1", "t"), is_direct=False)
UNADDRESSED = replace(GROUP, addresses_bot=False)
BOT = replace(DIRECT, sender=Sender(id="U1", is_bot=True))
CLOSED = Rules()
PERSON = Rules(people=frozenset({"U1"}))
CHAT = Rules(chats=frozenset({"C1"}))
BOTH = Rules(people=frozenset({"U1"}), chats=frozenset({"C1"}))
OPEN_CHAT = Rules(anyone_in=frozenset({"C1"}))
OPEN = Rules(people=frozenset({ANYONE}), chats=frozenset({ANYONE}))


@pytest.mark.parametrize(
    ("inbound", "rules", "verdict", "missing"),
    [
        (DIRECT, CLOSED, Verdict.PAIR, Missing.PERSON),
        (DIRECT, PERSON, Verdict.ADMIT, None),
        (DIRECT, CHAT, Verdict.PAIR, Missing.PERSON),
        (DIRECT, OPEN, Verdict.ADMIT, None),
        (DIRECT, OPEN_CHAT, Verdict.PAIR, Missing.PERSON),
        (GROUP, CLOSED, Verdict.PAIR, Missing.CHAT),
        (GROUP, PERSON, Verdict.PAIR, Missing.CHAT),
        (GROUP, CHAT, Verdict.PAIR, Missing.PERSON),
        (GROUP, BOTH, Verdict.ADMIT, None),
        (GROUP, OPEN, Verdict.ADMIT, None),
        (GROUP, OPEN_CHAT, Verdict.ADMIT, None),
        (replace(GROUP, route=Route("slack", "C2")), OPEN_CHAT, Verdict.PAIR, Missing.CHAT),
        (UNADDRESSED, OPEN, Verdict.IGNORE, None),
        (UNADDRESSED, CLOSED, Verdict.IGNORE, None),
        (BOT, OPEN, Verdict.IGNORE, None),
    ],
)
def test_a_message_is_judged_by_lists_of_ids(
    inbound: Inbound, rules: Rules, verdict: Verdict, missing: Missing | None
) -> None:
    decision = decide(inbound, rules)
    assert (decision.verdict, decision.missing) == (verdict, missing)


@pytest.mark.parametrize("kind", [InboundKind.EDIT, InboundKind.DELETE, InboundKind.REACTION])
def test_what_only_changes_a_message_starts_no_turn(kind: InboundKind) -> None:
    assert decide(replace(DIRECT, kind=kind), OPEN).verdict is Verdict.IGNORE


@pytest.mark.parametrize("kind", list(InboundKind))
@pytest.mark.parametrize("inbound", [DIRECT, GROUP, UNADDRESSED, BOT])
def test_no_kind_of_event_gets_past_empty_lists(kind: InboundKind, inbound: Inbound) -> None:
    assert decide(replace(inbound, kind=kind), CLOSED).verdict is not Verdict.ADMIT


def test_a_name_never_admits() -> None:
    namesake = replace(DIRECT, sender=Sender(id="U2", name="U1"))
    assert decide(namesake, PERSON).verdict is Verdict.PAIR
