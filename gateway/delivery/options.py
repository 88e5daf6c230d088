"""The settings of delivery."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class OnUncertain(StrEnum):
    """What to do about a part that may have arrived when the platform cannot be asked."""

    RESEND = "resend"
    NOTE = "note"


class DeliveryOptions(BaseModel):
    """`[delivery]`: how answers reach a chat."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    on_uncertain: OnUncertain = OnUncertain.RESEND
    """What to do when a part may have arrived and the platform cannot be asked: `resend` it (counted as a possible
    duplicate), or send a `note` in its place that something may be missing."""
    patience_hours: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 24
    """How long a delivery waits for a platform that cannot be reached or refuses the token."""
    max_attempts: Annotated[int, Field(ge=1)] = 10
    """How often a failing delivery is tried before it is given up, visibly; waiting for a platform is no failure."""
