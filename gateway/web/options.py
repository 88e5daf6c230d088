"""The settings of the HTTP server."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class HttpOptions(BaseModel):
    """`[http]`: where health is shown and platforms call in."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    enabled: bool = True
    """Whether to serve HTTP at all (health at `/live` and `/ready`, and addresses platforms call)."""
    host: str = "127.0.0.1"
    """The address to listen on; `0.0.0.0` for all, which a container needs."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8420
    """The port to listen on; 0 picks a free one."""
