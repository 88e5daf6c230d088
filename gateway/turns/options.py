"""The settings of turns."""

from __future__ import annotations

from datetime import time, timedelta
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from gateway.domain.busy import Busy
from gateway.domain.resets import ResetRule

SYSTEM_PROMPT = (
    "You are a helpful assistant talking with people in a chat. Answer in the language you are spoken to, plainly and"
    " briefly, in Markdown. Say so when you do not know something."
)


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, ZoneInfoNotFoundError) as error:
        raise ValueError("expected the name of a time zone, such as Europe/Berlin") from error
    return name


def _of_day(moment: time) -> time:
    if moment.tzinfo is not None:
        raise ValueError("expected a time such as 04:00; its zone is set by reset_zone")
    return moment


class GatewayOptions(BaseModel):
    """`[gateway]`: how turns are run."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    system_prompt: str = SYSTEM_PROMPT
    """What the model is told before every conversation; a channel can have its own."""
    max_concurrent_turns: Annotated[int, Field(ge=1)] = 64
    """How many conversations are answered at once in one process; more wait."""
    max_rounds: Annotated[int, Field(ge=1)] = 25
    """How often the model may call tools in one turn before it must answer."""
    turn_minutes: Annotated[float, Field(gt=0, le=1_440)] = 30
    """How long one message may be worked on, tools and all, before it is given up with a note."""
    busy: Busy = Busy.STEER
    """What becomes of a message that comes while its chat is being answered: `steer` takes it into the running answer
    after the next use of a tool, else it is answered next; `queue` always answers it next; `burst` waits until nothing
    has come for `burst_seconds` and answers all of it at once; `interrupt` breaks off and goes on with both."""
    burst_seconds: Annotated[float, Field(gt=0, le=60)] = 2
    """How long a `burst` must have been quiet; after five times as long it is answered anyway."""
    max_waiting: Annotated[int, Field(ge=1)] = 100
    """How many messages of one chat may wait for an answer; a person is told of what is not taken any more."""
    drain_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 20
    """How long a stopping process lets running turns finish; what is left is resumed by the next one."""
    lease_seconds: Annotated[float, Field(ge=1, le=86_400)] = 30
    """How long a process that vanished keeps its conversations from others."""
    sweep_seconds: Annotated[float, Field(ge=0.01, le=86_400)] = 5
    """How often work is looked for whose wake-up was lost."""
    phrases: Path | None = None
    """A file with other words for what the gateway itself says, in any language; `trunkline phrases` prints the ones
    there are."""
    titles: bool = True
    """Whether the model is asked, once a conversation has begun, for a title of it."""
    reset_idle_minutes: Annotated[int, Field(ge=1, le=5_256_000)] | None = None
    """After how long a silence a chat begins anew; by default never."""
    reset_daily_at: Annotated[time, AfterValidator(_of_day)] | None = None
    """The time of day, as `"04:00"`, at which every chat begins anew; by default never."""
    reset_zone: Annotated[str, AfterValidator(_zone)] = "UTC"
    """The time zone of `reset_daily_at`, as `Europe/Berlin`."""
    replay_tokens: Annotated[int, Field(ge=1)] | None = None
    """How much of a conversation the model is sent at most; by default what its window leaves room for."""

    replay_messages: Annotated[int, Field(ge=0)] | None = None
    """How many messages the model is sent at most; 0 for one for each 100 tokens of its window. By default as many as
    fit, which lets a provider's cache work: with a number, the beginning moves with every message."""

    compaction: bool = True
    """Whether the older part of a long conversation is summed up, so that it goes on cheaply; else it is left out."""
    compaction_share: Annotated[float, Field(ge=0.1, le=0.95)] = 0.8
    """How much of what a model can be sent must be in use before that happens."""
    compaction_cap: Annotated[int, Field(ge=10_000, le=2_000_000)] = 250_000
    """From how many tokens on it happens at the latest, however large the window is."""
    compaction_failure: Literal["ask", "trim"] = "ask"
    """What to do when no summary can be had: `ask` an owner, in a chat of their own, whether to try again; or `trim`,
    which leaves the oldest part out with a note. Everybody else is never asked."""
    compaction_ask_minutes: Annotated[float, Field(gt=0, le=1_440)] = 10
    """How long an owner is waited for before the oldest part is left out."""
    compaction_model: str | None = None
    """The model that sums up, as `provider:model`; by default the conversation's own."""

    @property
    def resets(self) -> ResetRule:
        """When a chat begins anew by itself."""
        idle = timedelta(minutes=self.reset_idle_minutes) if self.reset_idle_minutes else None
        return ResetRule(idle=idle, daily_at=self.reset_daily_at, zone=ZoneInfo(self.reset_zone))
