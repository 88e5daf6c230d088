"""What goes wrong around a gateway: platforms that limit, fail and drop, and models that are slow and fail."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from tests.acceptance.script import scripted
from tests.acceptance.world import World
from tests.loopback.models_answers import Answer, Asked, Fault
from tests.loopback.slack_faults import broken, limited, lost, refused
from tests.loopback.telegram import Trouble

MODEL_FAULTS = (
    Fault.RATE_LIMITED, Fault.SERVER_ERROR, Fault.OVERLOADED, Fault.HUNG_UP, Fault.DROPPED, Fault.ERROR_IN_STREAM,
    Fault.GARBLED, Fault.FILTER_REFUSED,
)  # fmt: skip
SLACK_FAULTS = (
    limited(1), broken(500), broken(503, apply=True), lost(apply=True), lost(apply=False), refused("fatal_error"),
)  # fmt: skip
TELEGRAM_TROUBLES = (
    Trouble.LIMITED, Trouble.LOST, Trouble.DROPPED, Trouble.BROKEN, Trouble.BAD_GATEWAY, Trouble.NONSENSE,
)  # fmt: skip
DROPS = 0.02
"""How often connections are cut as well."""
LONGEST_THOUGHT = 0.4
"""Seconds that a model takes at the most, mostly much less."""


class Weather:
    """Turns one thing bad after the other, by chance."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self._world = world
        self._chance = chance
        self._kinds: tuple[Callable[[], object], ...] = (self._slack, self._telegram, self._polls, self._model)

    async def blow(self, pause: float) -> None:
        """Do so until cancelled, with pauses of that many seconds at the most; then it is calm."""
        try:
            while True:
                await asyncio.sleep(self._chance.random() * pause)
                (kind,) = self._chance.choices(self._kinds, (10, 10, 1, 5))
                kind()
                if self._chance.random() < DROPS:
                    await self._world.slack.drop_connections()
                    self._world.telegram.drop_polls()
        finally:
            for one in (self._world.slack, self._world.telegram, self._world.models):
                one.calm()

    async def answer(self, asked: Asked) -> Answer:
        """Be a model that takes its time."""
        await asyncio.sleep(LONGEST_THOUGHT * self._chance.random() ** 4)
        return scripted(asked)

    def _slack(self) -> None:
        self._world.slack.fail_next(self._chance.choice(SLACK_FAULTS))

    def _telegram(self) -> None:
        self._world.telegram.fail(self._chance.choice(TELEGRAM_TROUBLES), retry_after=1)

    def _polls(self) -> None:
        trouble = self._chance.choice((Trouble.LIMITED, Trouble.DROPPED, Trouble.BROKEN))
        self._world.telegram.fail(trouble, method="getUpdates", retry_after=1)

    def _model(self) -> None:
        self._world.models.fail_next(self._chance.choice(MODEL_FAULTS))
