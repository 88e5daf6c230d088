"""The settings as frozen values: the sections no other package owns, and the whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from gateway.delivery.options import DeliveryOptions
from gateway.domain.busy import Busy
from gateway.domain.phrases import ENGLISH, Phrases
from gateway.domain.policy import ANYONE, Rules
from gateway.media.options import MediaOptions
from gateway.model.options import ModelOptions
from gateway.turns.options import GatewayOptions
from gateway.web.options import HttpOptions

# A password in an address is a secret although the address as a whole is not.
_PASSWORD = re.compile(r"://[^\s/:@]*:([^\s/]+)@")


class Section(BaseModel):
    """What every table of the configuration has in common."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class StoreOptions(Section):
    """`[store]`: where conversations are kept."""

    url: str = Field(default="", repr=False)
    """The SQLite file, as `sqlite:///PATH`; by default one in the data directory."""


class LogOptions(Section):
    """`[logs]`: what is told about the work."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important level that is shown."""
    file: Path | None = None
    """A file to write to besides standard error; rotated at 10 MB, five old ones are kept."""


def _as_ids(value: Any) -> Any:
    """Let ids be written as numbers, as Telegram's are, and refuse names, which anybody can take."""
    if not isinstance(value, list) or any(isinstance(id, bool) or not isinstance(id, int | str) for id in value):
        raise ValueError("expected a list of ids")
    ids = frozenset(str(id).strip() for id in value)
    if any(not id or id.startswith("@") for id in ids):
        raise ValueError("expected stable ids such as U012ABCDEF or 123456789, got a name or nothing")
    return ids


def _no_wildcard(ids: frozenset[str]) -> frozenset[str]:
    if ANYONE in ids:
        raise ValueError(f"expected ids of chats, got {ANYONE!r}; to admit everybody write people = [{ANYONE!r}]")
    return ids


Ids = Annotated[frozenset[str], BeforeValidator(_as_ids)]


class ChannelOptions(Section):
    """`[channels.NAME]`: what a channel of any kind can be told."""

    kind: str
    """`slack`, `telegram` or `console`; not needed if NAME is one of these."""
    enabled: bool = True
    """Whether the channel is used; a channel that is not may lack its token."""
    people: Ids = frozenset()
    """Ids of the people who may talk to the bot; `["*"]` admits everybody."""
    owners: Annotated[Ids, AfterValidator(_no_wildcard)] = frozenset()
    """Ids of the people who own the bot; they may talk to it, and are asked where something has to be decided."""
    chats: Ids = frozenset()
    """Ids of shared chats in which those people may talk to it; `["*"]` admits every chat."""
    anyone_in: Annotated[Ids, AfterValidator(_no_wildcard)] = frozenset()
    """Ids of shared chats in which everybody may talk to it."""
    system_prompt: str | None = None
    """Replaces `gateway.system_prompt` in this channel."""
    model: str | None = None
    """Replaces `model.default` in this channel."""
    busy: Busy | None = None
    """Replaces `gateway.busy` in this channel."""
    busy_in: dict[str, Busy] = Field(default_factory=dict)
    """Replaces it in single chats, as `{ C0123456789 = "queue" }`."""

    @property
    def rules(self) -> Rules:
        """Who may talk to the bot here."""
        people = self.people | self.owners
        return Rules(people=people, chats=self.chats, anyone_in=self.anyone_in, owners=self.owners)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSettings:
    """One channel: its common settings, and `options`, an instance of its kind's own class."""

    name: str
    kind: str
    rules: Rules
    options: BaseModel
    system_prompt: str | None = None
    model: str | None = None
    busy: Busy | None = None
    busy_in: Mapping[str, Busy] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set, read once.

    `channels` holds the enabled channels only; `file` is the file that was read, if there was one. `incomplete` names
    those that were left out for a token that is not here, where that was asked for.
    """

    data: Path
    file: Path | None
    gateway: GatewayOptions
    store: StoreOptions
    model: ModelOptions
    http: HttpOptions
    logs: LogOptions
    delivery: DeliveryOptions
    media: MediaOptions
    channels: Mapping[str, ChannelSettings]
    phrases: Phrases = ENGLISH
    disabled: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()

    def secrets(self) -> frozenset[str]:
        """Return every secret in the settings, and every password inside an address."""
        sections = (self.gateway, self.store, self.model, self.http, self.logs, self.delivery, self.media)
        options = (channel.options for channel in self.channels.values())
        return frozenset(secret for part in (*sections, *options) for secret in _secrets(part) if secret)


def _secrets(value: object) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
        yield from _secrets(value.get_secret_value())
    elif isinstance(value, str):
        for password in _PASSWORD.findall(value):
            yield from (password, unquote(password))
    elif isinstance(value, BaseModel):
        yield from (secret for _, field in value for secret in _secrets(field))
    elif isinstance(value, Mapping):
        yield from (secret for item in value.values() for secret in _secrets(item))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from (secret for item in value for secret in _secrets(item))
