"""The configured channels, made by the registry's factories."""

from __future__ import annotations

from channels import registry
from gateway.config.kinds import TERMINAL
from gateway.config.settings import ChannelSettings, Settings
from gateway.domain.policy import ANYONE, Rules
from gateway.ports.channel import Channel
from gateway.ports.clock import Clock

AT_THE_MACHINE = Rules(people=frozenset({ANYONE}))
"""Whoever can type into the process already has all that it has."""

options_by_kind = registry.options_by_kind


def build_channels(settings: Settings, clock: Clock, *, terminal: bool) -> dict[str, Channel]:
    """Make every enabled channel; a terminal's only where there is one, and then also unasked."""
    configured = {
        name: _build(channel, clock)
        for name, channel in settings.channels.items()
        if channel.kind != TERMINAL or terminal
    }
    has_terminal = any(channel.kind == TERMINAL for channel in configured.values())
    if terminal and not has_terminal and TERMINAL not in settings.disabled:
        configured[TERMINAL] = terminal_channel(TERMINAL, clock)
    return configured


def terminal_channel(name: str, clock: Clock, *, one_message: bool = False) -> Channel:
    """Make a channel of standard input and output; with `one_message`, all the input is a single message."""
    options = registry.load_options(TERMINAL)(one_message=one_message)
    return registry.load_adapter(TERMINAL)(name, options, clock)


def terminal_rules(channels: dict[str, Channel]) -> dict[str, Rules]:
    """Return the rules of the channels that need no list."""
    return {name: AT_THE_MACHINE for name, channel in channels.items() if channel.kind == TERMINAL}


def _build(channel: ChannelSettings, clock: Clock) -> Channel:
    return registry.load_adapter(channel.kind)(channel.name, channel.options, clock)
