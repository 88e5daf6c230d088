"""The summariser over the real wire of both styles: bounded input, no tools, a limit, and what it cost."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from gateway.domain.compaction.state import CompactionState
from gateway.domain.message import Message, Role
from gateway.domain.replay.pipeline import Terms
from gateway.ports.leases import session_lease
from gateway.ports.model import Tail
from gateway.ports.sessions import NewSession
from gateway.turns.breaks import Breaks
from gateway.turns.planning import Plan
from gateway.turns.profile import Profile
from gateway.turns.run import Run
from gateway.turns.summariser import NoSummary, Summariser
from tests.clock import ManualClock
from tests.loopback.models import Fault, ModelServer
from tests.model.rigs import models
from tests.stores import count_words, message, open_engine

SPAN = [
    Message(role=Role.USER, content="never on Fridays", seq=1, tokens=7),
    Message(role=Role.ASSISTANT, content="ok", seq=2),
]


@pytest.mark.parametrize("model", ["anthropic:claude-sonnet-5-5", "openai:gpt-4o"])
@pytest.mark.parametrize(
    "faults", [(), (Fault.OVERLOADED,), (Fault.OVERLOADED,) * 2, (Fault.OVERFLOW,), (Fault.UNAUTHORIZED,) * 2]
)
async def test_a_summary_is_asked_for_over_the_wire_and_a_refusal_is_no_end(
    server: ModelServer, tmp_path: Path, model: str, faults: tuple[Fault, ...]
) -> None:
    for fault in faults:
        server.fail_next(fault)
    server.answer = lambda asked: "## Goal\nnever on Fridays"
    router = models(server)
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        session_id = await store.turns.accept(message("hi", 1), NewSession())
        assert session_id is not None
        lease = await store.leases.acquire(session_lease(session_id), "me", timedelta(seconds=30))
        assert lease is not None
        turn = await store.turns.begin(session_id, lease)
        assert turn is not None
        run = Run(turn=turn, lease=lease, breaks=Breaks())
        plan = Plan(
            profile=Profile(model=model), info=router.info(model), terms=Terms(budget=1_000), tail=Tail(),
            fixed_tokens=0, factor=1.1,
        )  # fmt: skip
        summariser = Summariser(turns=store.turns, model=router, count=count_words, clock=ManualClock(), chosen=None)
        before = CompactionState(summary_text="They met.")
        if len(faults) == 2 or Fault.OVERFLOW in faults:
            with pytest.raises(NoSummary):
                await summariser.summary(run, SPAN, before, plan)
        else:
            summary = await summariser.summary(run, SPAN, before, plan)
            assert summary.text == "## Goal\nnever on Fridays"
            asked = server.requests[-1]
            assert not asked.get("tools")
            assert (asked.get("max_tokens") or asked.get("max_completion_tokens")) == 3_000
            assert "They met." in str(asked["messages"])
        assert server.refusals == []
    await router.close()
