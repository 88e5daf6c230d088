"""The kinds of channel there are: a literal table of dotted names, each loaded only when a channel of its kind is used.

A table rather than entry points, since any package that is installed could otherwise read every chat and token; and
dotted names rather than imports, so that a gateway with Telegram only needs no library of Slack.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, cast

from pydantic import BaseModel

from gateway.domain.errors import ConfigError
from gateway.ports.channel import Channel
from gateway.ports.clock import Clock

DISTRIBUTION = "trunkline"


class AdapterFactory(Protocol):
    """Makes a channel from its name and its validated options; connects to nothing."""

    def __call__(self, name: str, options: Any, clock: Clock) -> Channel:
        """Return the channel, not yet opened."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Where the parts of a kind are, as `module:name`, and the extra that brings its libraries."""

    adapter: str
    options: str
    extra: str | None = None
    setup: str | None = None


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "slack": Kind(
            adapter="channels.slack.adapter:SlackChannel",
            options="channels.slack.options:SlackOptions",
            extra="slack",
        ),
        "telegram": Kind(
            adapter="channels.telegram.adapter:TelegramChannel",
            options="channels.telegram.options:TelegramOptions",
            extra="telegram",
        ),
        "console": Kind(
            adapter="channels.console.adapter:ConsoleChannel",
            options="channels.console.options:ConsoleOptions",
        ),
    }
)


def load_adapter(kind: str, kinds: Mapping[str, Kind] = KINDS) -> AdapterFactory:
    """Return the factory of a kind's channels; raise `ConfigError` for an unknown kind or a missing library."""
    row = find_kind(kind, kinds)
    return cast(AdapterFactory, _load(kind, row, row.adapter))


def load_options(kind: str, kinds: Mapping[str, Kind] = KINDS) -> type[BaseModel]:
    """Return the class that a channel's own settings are validated with."""
    row = find_kind(kind, kinds)
    return cast(type[BaseModel], _load(kind, row, row.options))


def load_setup(kind: str, kinds: Mapping[str, Kind] = KINDS) -> Any | None:
    """Return what guides the owner through setting the kind up, or None if it needs no guidance."""
    row = find_kind(kind, kinds)
    return None if row.setup is None else _load(kind, row, row.setup)


def options_by_kind() -> Mapping[str, Callable[[], type[BaseModel]]]:
    """Return a loader of the options class for every kind, as the configuration wants them."""
    return {kind: partial(load_options, kind) for kind in KINDS}


def find_kind(kind: str, kinds: Mapping[str, Kind] = KINDS) -> Kind:
    """Return the row of a kind; raise `ConfigError` naming the nearest one if there is none."""
    if kind in kinds:
        return kinds[kind]
    near = get_close_matches(kind, kinds, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ConfigError("kind", f"expected one of {', '.join(kinds)}, got {kind!r}{hint}")


def _load(kind: str, row: Kind, dotted: str) -> object:
    module, _, name = dotted.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        # A module of ours that is missing is a bug, and no pip line would help.
        if row.extra is None or (error.name or "").split(".")[0] in ("gateway", "channels"):
            raise
        raise ConfigError("kind", missing_library(kind, row.extra, error.name or "a library")) from error


def missing_library(kind: str, extra: str, library: str) -> str:
    """Return what to tell an owner whose installation lacks a kind's library."""
    return f"a channel of kind {kind} needs {library}, which is not installed: pip install '{DISTRIBUTION}[{extra}]'"
