"""What an installation is made of besides its store: the configuration, the data directory, the gateway's process, its
models, and its channels.

A token or a key may be known to the gateway's own environment alone. So where one is missing here, that is wrong only
while no gateway runs: one that runs has what it needs.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gateway.app import core
from gateway.app.channels import build_channels, options_by_kind
from gateway.app.doctor.findings import Finding, count, ok, warn, wrong
from gateway.app.sessions import read_settings
from gateway.config.files import data_directory, find_file
from gateway.config.kinds import CHANNELS, TERMINAL
from gateway.config.load import load_settings
from gateway.config.settings import ChannelSettings, Settings
from gateway.config.tree import variable
from gateway.domain.errors import AuthFailed, ConfigError, Refused
from gateway.domain.policy import ANYONE, Rules
from gateway.store.opening import sqlite_path
from gateway.wakeups.clock import SystemClock

CONFIGURATION = "configuration"
DATA = "data directory"
PROCESS = "gateway"
MODELS = "models"

Problem = Mapping[str, str]


def read_configuration(
    config: Path | None, data: Path | None, environment: Mapping[str, str]
) -> tuple[Settings | None, Finding]:
    """Return the settings, or None where they cannot be read, and what is found of them."""
    where = "the configuration"
    try:
        file = find_file(config, environment, data_directory(data, environment))
        where = "no file; the defaults, and what the environment sets" if file is None else str(file.absolute())
        settings = read_settings(config, data, environment)
        sqlite_path(settings.store.url)
    except ConfigError as error:
        todo = "Mend what is told; docs/configuration.md has every setting. Nothing else can be looked at before."
        return None, wrong(CONFIGURATION, f"{where}: cannot be used", todo, _problems(error))
    except OSError as error:
        todo = "Run the doctor as the user that the gateway runs as; that user must be able to read it."
        return None, wrong(CONFIGURATION, f"{where}: cannot be read: {error.strerror}", todo)
    return settings, ok(CONFIGURATION, where)


def check_data(settings: Settings) -> Finding:
    """Look at the data directory."""
    path = settings.data
    if not os.path.lexists(path):
        return ok(DATA, f"{path}: not there yet; `trunkline run` makes it")
    if not path.is_dir():
        return wrong(DATA, f"{path}: is no directory", "Move it away, or choose another directory with --data.")
    if not os.access(path, os.W_OK | os.X_OK):
        todo = "Run the doctor as the user that the gateway runs as; that user must be able to write there."
        return wrong(DATA, f"{path}: cannot be written to", todo)
    return ok(DATA, str(path))


def check_gateway(settings: Settings) -> tuple[bool, Finding]:
    """Return whether a gateway runs on the store, and what is found of it."""
    path = core.lock_path(settings, core.GATEWAY)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False, ok(PROCESS, "none runs, and none has run here yet")
    except OSError as error:
        todo = "Run the doctor as the user that the gateway runs as."
        return False, wrong(PROCESS, f"{path}: cannot be opened: {error.strerror}", todo)
    try:
        holder = os.pread(descriptor, 64, 0).decode(errors="replace").strip()
        # There is no other way to learn of a lock. It is let go of at once, and two who look do not meet each other.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True, ok(PROCESS, f"runs as {holder or 'another process'}")
    finally:
        os.close(descriptor)
    if not holder:
        return False, ok(PROCESS, "none runs; the last one was stopped in good order")
    todo = "`trunkline run` starts one, which checks the store first and goes on where the last one was."
    return False, warn(PROCESS, f"none runs; the last one was killed ({holder})", todo)


def check_models(settings: Settings, environment: Mapping[str, str], *, is_running: bool) -> Finding:
    """Look whether the models that the settings name can be used; nothing is sent."""
    try:
        core.check_models(settings, environment)
    except AuthFailed as error:
        return _unknown_here(MODELS, str(error), is_running)
    except Refused as error:
        todo = f"Mend the name {_in(settings)}; docs/configuration.md tells how a model is written."
        return wrong(MODELS, str(error), todo)
    echo = "; no language model: it repeats what it was given" if settings.model.default == "echo" else ""
    return ok(MODELS, f"{settings.model.default} answers{echo}")


def check_channels(settings: Settings, environment: Mapping[str, str], *, is_running: bool) -> Sequence[Finding]:
    """Look at each channel: whether it is used, has what it needs, and who may talk."""
    lacking = _lacking(settings, environment) if settings.incomplete else {}
    found = [
        *(_channel(settings, channel) for channel in settings.channels.values()),
        *(
            _unknown_here(f"channel {name}", f"enabled, lacks {_names(problems)}", is_running, problems)
            for name, problems in lacking.items()
        ),
        *(ok(f"channel {name}", "not enabled") for name in settings.disabled),
    ]
    return found or [ok("channels", "none is configured; it can be talked to in a terminal only")]


def _channel(settings: Settings, channel: ChannelSettings) -> Finding:
    check, rules = f"channel {channel.name}", channel.rules
    try:
        build_channels(replace(settings, channels={channel.name: channel}), SystemClock(), terminal=False)
    except ConfigError as error:
        return wrong(check, "cannot be used", "Mend what is told.", _problems(error))
    if channel.kind == TERMINAL:
        return ok(check, "enabled; whoever sits at the terminal of `trunkline run` may talk")
    way = f"`people` under [{CHANNELS}.{channel.name}] {_in(settings)}"
    if settings.file is None:
        way = variable((CHANNELS, channel.name, "people"))
    if not rules.people and not rules.anyone_in:
        todo = f"Write the ids of those who may talk into {way}. Whoever writes to the bot is told the id."
        return warn(check, "enabled, has its token; closed: nobody is listed", todo)
    if rules.is_open:
        todo = f"If that is not wanted, write the ids of those who may talk into {way}, and take `anyone_in` out."
        return warn(check, f"enabled, has its token; {_openness(rules)}", todo)
    chats = f", in {count(len(rules.chats), 'chat')} and directly" if rules.chats else ""
    return ok(check, f"enabled, has its token; {count(len(rules.people), 'person', 'people')} may talk{chats}")


def _openness(rules: Rules) -> str:
    if ANYONE not in rules.people:
        return f"open: anybody may talk to it in {count(len(rules.anyone_in), 'chat')}"
    return f"open: anybody may talk to it{', in every chat' if ANYONE in rules.chats else ''}"


def _unknown_here(check: str, found: str, is_running: bool, details: Sequence[Problem] = ()) -> Finding:
    """Tell of a token or key that is missing here."""
    if is_running:
        todo = "The gateway that runs may have it in its own environment. If it does not, set it and start it anew."
        return warn(check, found, todo, details)
    return wrong(check, found, "Set it where the gateway is started, in its file or its environment.", details)


def _lacking(settings: Settings, environment: Mapping[str, str]) -> Mapping[str, Sequence[Problem]]:
    """Return what each channel lacks, by its name."""
    try:
        load_settings(settings.file, environment, options_by_kind(), settings.data)
    except ConfigError as error:
        problems = _problems(error)
        return {
            name: [one for one in problems if one["setting"].startswith(f"{CHANNELS}.{name}.")]
            for name in settings.incomplete
        }
    return dict.fromkeys(settings.incomplete, ())


def _names(problems: Sequence[Problem]) -> str:
    return " and ".join(one["setting"].rpartition(".")[2] for one in problems) or "a setting"


def _problems(error: ConfigError) -> Sequence[Problem]:
    """Return each problem that the error names; it has one a line, and its first one's setting may be none."""
    first, *others = str(error).splitlines()
    named = [(error.setting, first.removeprefix(f"{error.setting}: ")), *(line.split(": ", 1) for line in others)]
    return [{"setting": setting, "problem": problem} for setting, problem in named]


def _in(settings: Settings) -> str:
    return f"in {settings.file.absolute()}" if settings.file else "in the environment"
