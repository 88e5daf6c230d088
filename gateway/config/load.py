"""Loading the settings: find the file, lay the environment over it, refuse what is not right, freeze the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, time
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, to_json

from gateway.config.environment import Overlaid, ours, overlay
from gateway.config.files import data_directory, find_file, read_toml
from gateway.config.kinds import CHANNELS, Kinds, choose_kinds
from gateway.config.phrases import phrases_file, read_phrases
from gateway.config.problems import Problem, raise_problems, spoken_value, unknown
from gateway.config.settings import (
    ChannelOptions,
    ChannelSettings,
    LogOptions,
    Settings,
    StoreOptions,
)
from gateway.config.tree import Branch, Leaf, Node, branch_of, find, spoken, variable
from gateway.delivery.options import DeliveryOptions
from gateway.domain.errors import ConfigError
from gateway.domain.phrases import ENGLISH, Phrases
from gateway.domain.redaction import redact
from gateway.media.options import MediaOptions
from gateway.model.options import ModelOptions
from gateway.turns.options import GatewayOptions
from gateway.web.options import HttpOptions

SECTIONS: Mapping[str, type[BaseModel]] = {
    "gateway": GatewayOptions,
    "store": StoreOptions,
    "model": ModelOptions,
    "http": HttpOptions,
    "logs": LogOptions,
    "delivery": DeliveryOptions,
    "media": MediaOptions,
}
_WORDING = (
    ("Value error, ", ""),
    ("Input should be ", "expected "),
    ("expected greater", "expected a number greater"),
    ("expected less", "expected a number less"),
    ("String should match pattern ", "expected a text matching "),
    ("String should have ", "expected a text of "),
    ("a valid string", "a text"),
    ("a valid integer", "a whole number"),
    ("a valid number", "a number"),
    ("a valid boolean", "true or false"),
    ("a valid array", "a list"),
    ("a valid list", "a list"),
)
_M = TypeVar("_M", bound=BaseModel)


def load_settings(
    path: Path | None,
    environment: Mapping[str, str],
    kinds: Kinds,
    data: Path | None = None,
    *,
    need_channels: bool = True,
) -> Settings:
    """Return the settings of the file at `path` (or the one found) under `environment`.

    Without `need_channels`, as for what only reads the store, a channel that lacks what it needs (its token, which may
    be known to the gateway alone) is left out.
    Raises `ConfigError` that names every setting that is wrong, and what was expected; it never shows a secret.
    """
    directory = data_directory(data, environment)
    file = find_file(path, environment, directory)
    written = {} if file is None else read_toml(file)
    variables = ours(environment)
    chosen = choose_kinds(written, variables, kinds)
    tree = tree_of({name: kinds[kind]() for name, kind in chosen.items()})
    laid = overlay(written, variables, tree)
    problems = [*_misplaced(tree, laid.values, ()), *laid.problems]
    return _Loader(tree, laid, chosen, kinds, problems, need_channels).settings(directory, file)


def tree_of(channels: Mapping[str, type[BaseModel]], chosen: Node | None = None) -> Branch:
    """Return the shape of the whole configuration, with these channels and the classes of their own options."""
    tables = {name: channel_branch(options) for name, options in channels.items()}
    sections = {name: branch_of(model) for name, model in SECTIONS.items()}
    return Branch({**sections, CHANNELS: Branch(tables, chosen)})


def channel_branch(options: type[BaseModel]) -> Branch:
    """Return the table of one channel: what every kind takes, and what its own takes."""
    return Branch({**branch_of(ChannelOptions).fields, **branch_of(options).fields})


def _misplaced(node: Node, value: Any, path: tuple[str, ...]) -> Iterator[Problem]:
    """Yield what stands where nothing of its name or nature belongs."""
    dotted = ".".join(path)
    if isinstance(node, Leaf):
        if isinstance(value, date | time):
            yield Problem(dotted, f"expected {spoken(node.annotation)}, got {spoken_value(value, secret=True)}")
    elif not isinstance(value, Mapping):
        yield Problem(dotted, f"expected a table, got {spoken_value(value, secret=True)}")
    else:
        for name, inner in value.items():
            child = node.child(name)
            if child is None:
                yield unknown(".".join((*path, name)), name, node.fields)
            else:
                yield from _misplaced(child, inner, (*path, name))


@dataclass(frozen=True, slots=True)
class _Incomplete:
    """A channel that is wanted and lacks something that it needs."""

    name: str


@dataclass(frozen=True, slots=True)
class _Loader:
    """Builds the frozen settings, or adds what is wrong with them to the problems that are known already."""

    tree: Branch
    laid: Overlaid
    kinds: Mapping[str, str]
    loaders: Kinds
    problems: list[Problem]
    need_channels: bool

    def settings(self, data: Path, file: Path | None) -> Settings:
        sections: dict[str, Any] = {
            name: self._build(model, (name,), self.laid.values.get(name, {})) for name, model in SECTIONS.items()
        }
        channels = [self._channel(name, kind) for name, kind in self.kinds.items()]
        wanted = {channel.name for channel in channels if channel is not None}
        phrases = self._phrases(sections["gateway"], file)
        raise_problems(self.problems)
        if not sections["store"].url:
            url = f"sqlite:///{data / 'trunkline.db'}"
            sections["store"] = sections["store"].model_copy(update={"url": url})
        return Settings(
            data=data,
            file=file,
            channels={channel.name: channel for channel in channels if isinstance(channel, ChannelSettings)},
            disabled=tuple(name for name in self.kinds if name not in wanted),
            incomplete=tuple(channel.name for channel in channels if isinstance(channel, _Incomplete)),
            phrases=phrases,
            **sections,
        )

    def _phrases(self, options: GatewayOptions | None, file: Path | None) -> Phrases:
        if options is None or options.phrases is None:
            return ENGLISH
        setting = ("gateway", "phrases")
        try:
            return read_phrases(phrases_file(options.phrases, file))
        except ConfigError as error:
            lines = str(error).splitlines()
            self.problems.extend(Problem(".".join(setting), line + self._source(setting)) for line in lines)
            return ENGLISH

    def _channel(self, name: str, kind: str) -> ChannelSettings | _Incomplete | None:
        path = (CHANNELS, name)
        values = {"kind": kind, **self._table(name)}
        shared = {key: value for key, value in values.items() if key in ChannelOptions.model_fields}
        own = {key: value for key, value in values.items() if key not in shared}
        common = self._build(ChannelOptions, path, shared)
        enabled = common is None or common.enabled
        options = self._build(self.loaders[kind](), path, own, complete=enabled and self.need_channels)
        if common is None or not enabled:
            return None
        if options is None:
            return _Incomplete(name)
        return ChannelSettings(
            name=name,
            kind=kind,
            rules=common.rules,
            options=options,
            system_prompt=common.system_prompt,
            model=common.model,
            busy=common.busy,
            busy_in=common.busy_in,
        )

    def _table(self, name: str) -> Mapping[str, Any]:
        tables = self.laid.values.get(CHANNELS, {})
        table = tables.get(name, {}) if isinstance(tables, Mapping) else {}
        # What is no table was told of already.
        return table if isinstance(table, Mapping) else {}

    def _build(self, model: type[_M], path: tuple[str, ...], values: Any, *, complete: bool = True) -> _M | None:
        # JSON is pydantic's strict mode that still takes a list for a set and a text for a path.
        try:
            return model.model_validate_json(to_json(values, inf_nan_mode="constants"), strict=True)
        except ValidationError as error:
            passed_over = {"extra_forbidden"} if complete else {"extra_forbidden", "missing"}
            found = error.errors(include_url=False, include_context=False)
            told = {problem.setting for problem in self.problems}
            new = (self._explain(path, one) for one in found if one["type"] not in passed_over)
            self.problems.extend(problem for problem in new if problem.setting not in told)
            return None

    def _explain(self, path: tuple[str, ...], error: ErrorDetails) -> Problem:
        where = tuple(part for part in (*path, *error["loc"]) if part != "[key]")
        names = tuple(str(part) for part in where)
        if error["type"] == "missing":
            return Problem(".".join(names), f"is missing; set it in the file or as {variable(names)}")
        node = find(self.tree, where)
        secret = not isinstance(node, Leaf) or node.is_secret
        came = error["input"]
        message = _reworded(error["msg"])
        if isinstance(came, str):
            message = redact(message, [came] if secret else [])
        if "got " not in message:
            message += f", got {spoken_value(came, secret=secret)}"
        return Problem(".".join(names), message + self._source(names))

    def _source(self, names: tuple[str, ...]) -> str:
        """Return which variable a value came from, if one did; it may have set the whole table."""
        paths = (names[:length] for length in range(len(names), 0, -1))
        return next((f" (from {self.laid.origins[path]})" for path in paths if path in self.laid.origins), "")


def _reworded(message: str) -> str:
    for before, after in _WORDING:
        message = message.replace(before, after, 1)
    return message
