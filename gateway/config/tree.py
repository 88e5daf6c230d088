"""The shape of the configuration, read off the options classes: which names may stand where, and what each holds.

One tree serves every question that is asked by name: what a variable of the environment means, which key is unknown and
what was meant by it, and what the documentation has to list. So no setting is written down twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretBytes, SecretStr

PREFIX = "TRUNKLINE_"
JOINT = "__"


@dataclass(frozen=True, slots=True)
class Leaf:
    """One setting: what it holds, its default as a person reads it (None if it has to be set), and what it is for."""

    annotation: Any
    default: str | None = None
    doc: str = ""

    @property
    def is_secret(self) -> bool:
        """Whether its value must not be shown."""
        return any(part in (SecretStr, SecretBytes) for part in parts(self.annotation))


@dataclass(frozen=True, slots=True)
class Branch:
    """A table: its settings by name, and what stands under names the owner chooses, if it has such."""

    fields: Mapping[str, Node] = field(default_factory=dict)
    chosen: Node | None = None

    def child(self, name: str) -> Node | None:
        """Return what stands under `name`."""
        return self.fields.get(name, self.chosen)


Node = Leaf | Branch


def branch_of(model: type[BaseModel]) -> Branch:
    """Return the table that an options class describes."""
    nodes: dict[str, Node] = {}
    for name, info in model.model_fields.items():
        default = None if info.is_required() else _show(info.get_default(call_default_factory=True, validated_data={}))
        nodes[name] = _node(info.annotation, default, " ".join((info.description or "").split()))
    return Branch(nodes)


def _node(annotation: Any, default: str | None = None, doc: str = "") -> Node:
    bare = without_none(annotation)
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        return branch_of(bare)
    if get_origin(bare) in (dict, Mapping) and len(get_args(bare)) == 2:
        return Branch(chosen=_node(get_args(bare)[1], "none", doc))
    return Leaf(annotation, default, doc)


def find(node: Node, path: tuple[str | int, ...]) -> Node | None:
    """Return the node at `path`, or the leaf that `path` leads into."""
    for name in path:
        if not isinstance(node, Branch):
            return node
        child = node.child(str(name))
        if child is None:
            return None
        node = child
    return node


def leaves(node: Node, prefix: tuple[str, ...] = (), chosen: str = "NAME") -> Iterator[tuple[tuple[str, ...], Leaf]]:
    """Yield every setting with its path; a name the owner chooses is written `chosen`."""
    if isinstance(node, Leaf):
        yield prefix, node
        return
    for name, child in node.fields.items():
        yield from leaves(child, (*prefix, name), chosen)
    if node.chosen is not None:
        yield from leaves(node.chosen, (*prefix, chosen), chosen)


def variable(path: tuple[str, ...]) -> str:
    """Return the variable of the environment that sets `path`."""
    return PREFIX + JOINT.join(name.replace("-", "_").upper() for name in path)


def parts(annotation: Any) -> Iterator[Any]:
    """Yield an annotation and everything inside it."""
    yield annotation
    for inner in get_args(annotation):
        yield from parts(inner)


def without_none(annotation: Any) -> Any:
    """Return `X` for `X | None`, and anything else as it is."""
    if get_origin(annotation) in (Union, UnionType):
        rest = [part for part in get_args(annotation) if part is not NoneType]
        return rest[0] if len(rest) == 1 else annotation
    return annotation


def spoken(annotation: Any) -> str:
    """Return a type as a person says it."""
    bare = without_none(annotation)
    origin = get_origin(bare)
    if origin is Literal:
        return " or ".join(f'"{choice}"' for choice in get_args(bare))
    if isinstance(bare, type) and issubclass(bare, Enum):
        return " or ".join(f'"{choice.value}"' for choice in bare)
    if any(part in (SecretStr, SecretBytes) for part in parts(bare)):
        return "secret text"
    if origin in (list, tuple, set, frozenset) or bare in (list, tuple, set, frozenset):
        return "list of texts"
    # Annotated[X, …] tells a constraint beside the type.
    bare = get_args(bare)[0] if hasattr(bare, "__metadata__") else bare
    return {bool: "true or false", int: "whole number", float: "number"}.get(bare, "text")


def _show(default: Any) -> str:
    if default is None:
        return "none"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, list | tuple | set | frozenset):
        return "[" + ", ".join(_show(item) for item in default) + "]"
    if isinstance(default, int | float):
        return f"{default:g}" if isinstance(default, float) else str(default)
    return f'"{default}"'
