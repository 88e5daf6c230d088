"""Which channels are configured, and of which kind each is: what has to be known before the rest can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from gateway.config.problems import Problem, raise_problems, spoken_value, unknown
from gateway.config.tree import JOINT, variable
from gateway.domain.errors import InvalidKey
from gateway.domain.keys import check_channel_name

Kinds = Mapping[str, Callable[[], type[BaseModel]]]
"""For each kind of channel, what loads the class of its own options."""

CHANNELS = "channels"
"""The table of tables in which each channel is configured."""
TERMINAL = "console"
"""The kind that the gateway's own terminals are of, and the name of the one that `run` opens."""
CHAT = "chat"
"""The name of the channel that the command `chat` opens; another chat's begins with it and a `-`."""


def choose_kinds(written: Mapping[str, Any], variables: Mapping[str, str], kinds: Kinds) -> dict[str, str]:
    """Return each channel's kind; a channel may be written in the file, or in the environment alone."""
    channels = written.get(CHANNELS)
    tables = (
        {name: table for name, table in channels.items() if isinstance(table, dict)}
        if isinstance(channels, dict)
        else {}
    )
    names = [*tables, *_named_by_variables(tables, variables, kinds)]
    raise_problems(list(_bad_names(names)))
    found: dict[str, str] = {}
    problems: list[Problem] = []
    for name in names:
        kind = variables.get(variable((CHANNELS, name, "kind"))) or tables.get(name, {}).get("kind")
        kind = name if kind is None and name in kinds else kind
        setting = f"{CHANNELS}.{name}.kind"
        if kind is None:
            problems.append(Problem(setting, f"is missing; expected one of {', '.join(kinds)}"))
        elif not isinstance(kind, str) or kind not in kinds:
            problems.append(unknown(setting, str(kind), kinds, f"kind {spoken_value(kind, secret=False)}"))
        elif kind != TERMINAL and is_terminal_name(name):
            problems.append(Problem(setting, f"expected {TERMINAL}, got {kind}: {name} is a terminal's own name"))
        else:
            found[name] = kind
    raise_problems(problems)
    return found


def is_terminal_name(name: str) -> bool:
    """Whether the gateway opens terminals of this name by itself, whose conversations another kind would mix with."""
    return name in (TERMINAL, CHAT) or name.startswith(f"{CHAT}-")


def _bad_names(names: Iterable[str]) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for name in names:
        try:
            check_channel_name(name)
        except InvalidKey as error:
            yield Problem(f"{CHANNELS}.{name}", str(error))
        spelled = variable((CHANNELS, name))
        if spelled in seen:
            other = f"{CHANNELS}.{seen[spelled]}"
            yield Problem(
                f"{CHANNELS}.{name}", f"shares the variables {spelled}{JOINT}… with {other}; rename one of them"
            )
        seen[spelled] = name


def _named_by_variables(written: Mapping[str, Any], variables: Mapping[str, str], kinds: Kinds) -> list[str]:
    """Return the channels that only the environment names.

    A name it makes up has to be a kind or to come with one; anything else is a misspelled name of a written channel.
    """
    start = variable((CHANNELS, ""))
    taken = tuple(variable((CHANNELS, name, "")) for name in written)
    heads = {
        name.removeprefix(start).partition(JOINT)[0].lower()
        for name in variables
        if name.startswith(start) and not f"{name}{JOINT}".startswith(taken)
    }
    return sorted(head for head in heads if head in kinds or variable((CHANNELS, head, "kind")) in variables)
