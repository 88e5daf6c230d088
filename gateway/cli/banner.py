"""What `run` tells whoever started it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gateway.config.settings import Settings
from gateway.domain.policy import ANYONE, Rules
from gateway.model.providers import suggestions
from gateway.ports.channel import Channel


def banner(
    settings: Settings,
    channels: Mapping[str, Channel],
    environment: Mapping[str, str],
    address: str | None,
    *,
    has_terminal: bool,
) -> Iterator[str]:
    """Yield the lines: where the data is, which model answers, who may talk, and where health is told."""
    yield f"Trunkline is running. Its store is {settings.store.url}"
    yield f"  model     {settings.model.default}{_other_models(settings, environment)}"
    for name, channel in channels.items():
        configured = settings.channels.get(name)
        who = _who(configured.rules) if configured and channel.kind != "console" else "this terminal"
        yield f"  channel   {name}: {who}"
    if address:
        yield f"  health    {address}/ready"
    if not channels:
        yield "  No channel is configured and there is no terminal: nobody can talk to it. See docs/configuration.md."
    yield (
        "Type a message; /stop breaks an answer off. The gateway: Ctrl-C stops it."
        if has_terminal
        else "Ctrl-C or SIGTERM stops it."
    )


def _other_models(settings: Settings, environment: Mapping[str, str]) -> str:
    if settings.model.default != "echo":
        return ""
    found = suggestions(environment)
    hint = f"; a key for another is set: --model {' or --model '.join(found)} would use it" if found else ""
    return f" (no language model: it repeats what it was given{hint})"


def _who(rules: Rules) -> str:
    if ANYONE in rules.people:
        return "OPEN: anybody may talk to it" + (", in every chat" if ANYONE in rules.chats else " directly")
    if not rules.people and not rules.anyone_in:
        return "closed: nobody is listed yet; whoever writes to it is told the id to list"
    listed = f"{_count(len(rules.people), 'person', 'people')} listed"
    chats = f" in {_count(len(rules.chats), 'chat', 'chats')} and directly" if rules.chats else ""
    opened = f"; OPEN to anybody in {_count(len(rules.anyone_in), 'chat', 'chats')}" if rules.anyone_in else ""
    return listed + chats + opened


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
