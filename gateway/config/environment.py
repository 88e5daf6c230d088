"""Laying the environment over a configuration: `TRUNKLINE_SECTION__KEY` means `section.key`.

Written here rather than left to pydantic-settings, which drops a variable it does not know without a word, and cannot
tell that `SLACK_ACME` means the channel `slack-acme`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args, get_origin

from pydantic import TypeAdapter, ValidationError

from gateway.config.problems import Problem, unknown
from gateway.config.tree import JOINT, PREFIX, Branch, Leaf, Node, leaves, variable, without_none

OTHER_VARIABLES = frozenset({"TRUNKLINE_DATA", "TRUNKLINE_CONFIG"})
"""Variables that say where the configuration is, and are no part of it."""


@dataclass(frozen=True, slots=True)
class Overlaid:
    """A configuration with the environment laid over it, and which variable set which path."""

    values: Mapping[str, Any]
    origins: Mapping[tuple[str, ...], str]
    problems: list[Problem] = field(default_factory=list)


def ours(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that set something; an empty one counts as not set."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if name.startswith(PREFIX) and value and name not in OTHER_VARIABLES
    }


def overlay(values: Mapping[str, Any], variables: Mapping[str, str], tree: Branch) -> Overlaid:
    """Return `values` with the variables laid over them, each read as its setting's type asks."""
    merged: dict[str, Any] = copy.deepcopy(dict(values))
    origins: dict[tuple[str, ...], str] = {}
    problems: list[Problem] = []
    for name, text in variables.items():
        found = resolve(name.removeprefix(PREFIX).upper(), tree, merged)
        if found is None:
            problems.append(unknown(name, name, _known(tree, merged), "variable"))
            continue
        path, node = found
        if _is_broken(text):
            problems.append(Problem(name, "expected UTF-8 text"))
        elif not _put(merged, path, decode(text, node)):
            problems.append(Problem(name, f"{path[0]} is no table in the file"))
        origins[path] = name
    return Overlaid(merged, origins, problems)


def resolve(rest: str, node: Node, values: object) -> tuple[tuple[str, ...], Node] | None:
    """Return the path and node that the rest of a variable's name leads to.

    A name that the file uses counts as it is written there, so `SLACK_ACME` finds `slack-acme`; the longest one that
    fits wins.
    """
    if not isinstance(node, Branch):
        return None
    inside = values if isinstance(values, Mapping) else {}
    children: dict[str, Node] = {} if node.chosen is None else dict.fromkeys(inside, node.chosen)
    for name, child in sorted((children | dict(node.fields)).items(), key=lambda item: -len(item[0])):
        spelled = name.replace("-", "_").upper()
        if rest == spelled:
            return (name,), child
        if rest.startswith(spelled + JOINT):
            deeper = resolve(rest[len(spelled + JOINT) :], child, inside.get(name))
            return None if deeper is None else ((name, *deeper[0]), deeper[1])
    return _resolve_new(rest, node)


def _resolve_new(rest: str, node: Branch) -> tuple[tuple[str, ...], Node] | None:
    head, joint, tail = rest.partition(JOINT)
    if node.chosen is None or not head:
        return None
    name = head.lower()
    if not joint:
        return (name,), node.chosen
    deeper = resolve(tail, node.chosen, {})
    return None if deeper is None else ((name, *deeper[0]), deeper[1])


def decode(text: str, node: Node) -> Any:
    """Return a variable's text as the value a file would hold; what does not fit stays text, and is refused later."""
    if isinstance(node, Branch):
        return _json(text, "{")
    bare = without_none(node.annotation)
    bare = get_args(bare)[0] if hasattr(bare, "__metadata__") else bare
    if bare in (int, float, bool):
        try:
            return TypeAdapter[Any](bare).validate_python(text.strip())
        except ValidationError:
            return text
    if get_origin(bare) in (list, tuple, set, frozenset):
        parsed = _json(text, "[")
        return parsed if isinstance(parsed, list) else [item.strip() for item in text.split(",") if item.strip()]
    return text


def _json(text: str, opening: str) -> Any:
    if not text.lstrip().startswith(opening):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _put(values: dict[str, Any], path: tuple[str, ...], value: Any) -> bool:
    for name in path[:-1]:
        inner = values.setdefault(name, {})
        if not isinstance(inner, dict):
            return False
        values = inner
    values[path[-1]] = value
    return True


def _is_broken(text: str) -> bool:
    """Whether the variable held bytes that are no text, which Python brings in as lone surrogates."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def _known(tree: Node, values: object, prefix: tuple[str, ...] = ()) -> set[str]:
    if isinstance(tree, Leaf):
        return {variable(prefix)}
    inside = values if isinstance(values, Mapping) else {}
    found = {name for name in inside if isinstance(name, str)} if tree.chosen is not None else set()
    known = {variable(path) for path, _ in leaves(tree, prefix)} if not found else set()
    for name in {*tree.fields, *found}:
        child = tree.child(name)
        if child is not None:
            known |= _known(child, inside.get(name), (*prefix, name))
    return known
