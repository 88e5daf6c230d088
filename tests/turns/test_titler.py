"""Titles made by the model: after the answer, at most twice, and never over one that somebody wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.domain.errors import Unavailable
from gateway.domain.titles import TitleSource
from gateway.ports.model import ModelInfo, ModelRequest
from gateway.ports.wakeups import Topic
from gateway.turns.profile import Profile
from gateway.turns.titler import Titler
from tests.fakes import FakeModel
from tests.turns.conftest import Rig


class TitlingModel(FakeModel):
    """Answers a request for a title with the next of its titles."""

    def __init__(self, *titles: str | Exception) -> None:
        super().__init__()
        self.titles = list(titles)
        self.asked: list[ModelRequest] = []
        self.can_write = True

    def info(self, model: str) -> ModelInfo:
        info = super().info(model)
        return replace(info, writes=self.can_write)

    async def complete(self, request: ModelRequest) -> str:
        self.asked.append(request)
        title = self.titles.pop(0)
        if isinstance(title, Exception):
            raise title
        return title


def titler(rig: Rig, model: TitlingModel) -> Titler:
    return Titler(
        sessions=rig.store.sessions, model=model, profiles=lambda session: Profile(model="fake:one", system_prompt="x")
    )


async def title_of(rig: Rig, session_id: str) -> tuple[str, TitleSource]:
    session = await rig.store.sessions.get(session_id)
    return session.title, session.title_source


async def test_a_finished_turn_asks_for_a_title_and_does_not_wait_for_it(rig: Rig) -> None:
    session_id = await rig.turn("Plan my trip to Rome", 1)
    assert (Topic.TITLE, session_id) in rig.wakeups._waiting
    model = TitlingModel('"Trip to Rome"')
    await titler(rig, model).title(session_id)
    assert await title_of(rig, session_id) == ("Trip to Rome", TitleSource.GENERATED)
    assert "user: Plan my trip to Rome" in model.asked[0].messages[0].text
    assert "assistant: answer to Plan" in model.asked[0].messages[0].text


async def test_titles_can_be_switched_off(rig: Rig) -> None:
    rig = Rig(
        rig.store, rig.clock, rig.model, rig.policy, rig.media, options=rig.options.model_copy(update={"titles": False})
    )
    await rig.turn("hi", 1)
    assert {topic for topic, _ in rig.wakeups._waiting} == {Topic.SESSION, Topic.LANE}


@pytest.mark.parametrize("useless", ["NO TOPIC", "x" * 100, Unavailable("down")])
async def test_two_attempts_are_the_most(rig: Rig, useless: str | Exception) -> None:
    session_id = await rig.turn("hello", 1)
    model = TitlingModel(useless, useless, "too late")
    for _ in range(3):
        await titler(rig, model).title(session_id)
    assert len(model.asked) == 2
    assert await title_of(rig, session_id) == ("hello", TitleSource.FIRST_LINE)


async def test_a_title_somebody_wrote_is_left_alone(rig: Rig) -> None:
    session_id = await rig.turn("hello", 1)
    await rig.store.sessions.set_title(session_id, "Mine", TitleSource.EDITED)
    model = TitlingModel("Other")
    await titler(rig, model).title(session_id)
    assert model.asked == []
    assert await title_of(rig, session_id) == ("Mine", TitleSource.EDITED)


async def test_a_model_that_only_repeats_is_not_asked(rig: Rig) -> None:
    session_id = await rig.turn("hello", 1)
    model = TitlingModel("never")
    model.can_write = False
    await titler(rig, model).title(session_id)
    assert model.asked == []
