"""How a session's requests are made: who is asked, and with how many tokens of history."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.errors import Refused
from gateway.domain.message import TOKENS_PER_MESSAGE
from gateway.domain.replay.pipeline import Terms
from gateway.domain.replay.window import most_messages
from gateway.domain.session import Session
from gateway.domain.turn import Usage
from gateway.ports.model import Model, ModelInfo, Tail
from gateway.ports.tokens import TokenCounter
from gateway.ports.tools import ToolSpec
from gateway.ports.turns import Turns
from gateway.turns.calibrating import Calibration
from gateway.turns.options import GatewayOptions
from gateway.turns.profile import Profile, Profiles

SHARE_OF_REFUSED = 0.9
REFUSALS_KEPT = 1_000
TEXTS_KEPT = 200
"""System prompts and sets of tools whose tokens are remembered; more than that are not used side by side."""
NO_TAIL = Tail()
LARGEST_PART = 4
"""One row may take a quarter of the window: a share of what does not change, so that it is always cut the same way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What requests are made with. `fixed_tokens` is what is sent besides the history, as we count it.

    `factor` is how many tokens the provider makes of one of ours.
    """

    profile: Profile
    info: ModelInfo
    terms: Terms
    tail: Tail
    fixed_tokens: int
    factor: float


class Planner:
    """Plans requests from the settings, what is known of the model, and what it reported before."""

    def __init__(
        self, *, turns: Turns, model: Model, profiles: Profiles, count: TokenCounter, options: GatewayOptions
    ) -> None:
        self._calibration = Calibration(turns)
        self._model = model
        self._profiles = profiles
        self._count = count
        self._options = options
        self._counted: dict[tuple[str, ...], int] = {}
        self._refused: OrderedDict[tuple[str, str], int] = OrderedDict()

    def refused(self, session: Session, plan: Plan, tokens: int) -> None:
        """Remember that the plan's model found so many tokens of the session too large, and answered to fewer.

        It holds for the session alone, so that an odd one takes nothing from the others; and for the life of the
        process, since a provider may change.
        """
        key = (session.id, plan.profile.model)
        self._refused[key] = min(tokens, self._refused.pop(key, tokens))
        while len(self._refused) > REFUSALS_KEPT:
            self._refused.popitem(last=False)

    def learn(self, usage: Usage) -> None:
        """Remember how the provider counted a request."""
        self._calibration.learn(usage)

    @property
    def compacts(self) -> bool:
        """Whether long conversations are compacted by themselves."""
        return self._options.compaction

    def who(self, session: Session, model: str | None = None) -> tuple[Profile, ModelInfo]:
        """Return who is asked for a session, and what is known of the model; `model` is one to be asked instead."""
        profile = self._profiles(session)
        if model is not None:
            profile = Profile(model=model, system_prompt=profile.system_prompt)
        return profile, self._model.info(profile.model)

    async def plan(
        self, session: Session, specs: Sequence[ToolSpec], tail: Tail = NO_TAIL, *, model: str | None = None
    ) -> Plan:
        """Return what the session's requests are made with; `model` asks another one than its own.

        Raises `Refused` where nothing is left for the history.
        """
        profile, info = self.who(session, model)
        fixed = await self._fixed(profile, specs) + self._line(tail.text) + tail.picture_tokens
        factor = await self._calibration.factor(info.provider, info.name)
        room = int((info.window - info.max_output) / factor) - fixed
        if room <= 0:
            raise Refused(
                f"expected a system prompt and tools that leave room in the {info.window} tokens of {profile.model} "
                f"({info.max_output} are kept for the answer), got {fixed} tokens of them"
            )
        refused = self._refused.get((session.id, profile.model))
        taken = room if refused is None else max(int(refused * SHARE_OF_REFUSED), 1)
        terms = Terms(
            budget=min(room, self._options.replay_tokens or room, taken),
            largest=min(info.window, 2 * (self._options.replay_tokens or info.window)) // LARGEST_PART,
            provider=info.provider if info.thinking else "",
            most_messages=self._most_messages(info),
        )
        return Plan(profile=profile, info=info, terms=terms, tail=tail, fixed_tokens=fixed, factor=factor)

    async def _fixed(self, profile: Profile, specs: Sequence[ToolSpec]) -> int:
        """Return the tokens of what is the same from turn to turn; it may be long, and is counted once."""
        texts = (profile.system_prompt, *(f"{spec.name} {spec.description} {spec.schema}" for spec in specs))
        if texts not in self._counted:
            tokens = await asyncio.to_thread(lambda: sum(map(self._line, texts)))
            if len(self._counted) >= TEXTS_KEPT:
                self._counted.clear()
            self._counted[texts] = tokens
        return self._counted[texts]

    def _line(self, text: str) -> int:
        return self._count(text) + TOKENS_PER_MESSAGE if text else 0

    def _most_messages(self, info: ModelInfo) -> int | None:
        wanted = self._options.replay_messages
        return most_messages(info.window) if wanted == 0 else wanted
