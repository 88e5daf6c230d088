"""Where a session came from, and how people know that place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a session came from; set once, and shown to people as `label`."""

    kind: str
    label: str = ""
    tenant: str | None = None
    chat_id: str | None = None
    chat_name: str | None = None
    thread: str | None = None
    actor: str | None = None
    parent: str | None = None
    permalink: str | None = None


def origin_label(origin: Origin) -> str:
    """Return the label an origin states, else one made of its fields.

    A Slack channel reads `#general · T0ABCD`, a Slack or Telegram person `@alice`, a Telegram group by its title, a
    GitHub repository with its number `acme/api#42`; anything else by its name, else by its id, else by its kind.
    """
    if origin.label:
        return origin.label
    name = origin.chat_name or origin.chat_id or ""
    if origin.kind == "slack":
        return _slack(origin, name)
    if origin.kind == "github" and name and origin.thread:
        return f"{name}#{origin.thread}"
    return name or origin.kind


def _slack(origin: Origin, name: str) -> str:
    is_direct = (origin.chat_id or "").startswith("D")
    if is_direct:
        return f"@{origin.chat_name or origin.actor or name}"
    place = f"#{name.lstrip('#')}" if name else "Slack"
    return f"{place} · {origin.tenant}" if origin.tenant else place
