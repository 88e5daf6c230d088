"""Every setting there is, as rows for the documentation and for whoever asks what can be set."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from gateway.config.kinds import CHANNELS, Kinds
from gateway.config.load import SECTIONS
from gateway.config.settings import ChannelOptions
from gateway.config.tree import branch_of, leaves, spoken


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """One setting: its dotted name, its type in words, its default (None if it has to be set), and what it is for.

    `kind` names the kind of channel that alone has it.
    """

    name: str
    type: str
    default: str | None
    doc: str
    kind: str = ""


def describe(kinds: Kinds) -> tuple[SettingRow, ...]:
    """Return all settings in the order of the documentation: the sections, any channel's, then each kind's own."""
    rows = [row for name, model in SECTIONS.items() for row in _rows(name, model)]
    rows += _rows(f"{CHANNELS}.NAME", ChannelOptions)
    return (*rows, *(row for kind, load in kinds.items() for row in _rows(f"{CHANNELS}.NAME", load(), kind)))


def _rows(prefix: str, model: type[BaseModel], kind: str = "") -> list[SettingRow]:
    return [
        SettingRow(
            name=".".join((prefix, *path)),
            type=spoken(leaf.annotation),
            default=leaf.default,
            doc=leaf.doc,
            kind=kind,
        )
        for path, leaf in leaves(branch_of(model), chosen="NAME")
    ]
