"""The floors of the house: a module imports only from floors below its own, and nothing imports in a circle."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

FLOORS = [
    ["gateway.domain"],
    ["gateway.ports"],
    [
        "gateway.store", "gateway.media", "gateway.wakeups", "gateway.model", "gateway.tools", "gateway.tokens",
        "gateway.events", "gateway.events",
        "channels.slack", "channels.telegram", "channels.console",
    ],
    ["gateway.sessions", "gateway.delivery"],
    ["gateway.turns"],
    ["gateway.commands", "gateway.hooks", "gateway.schedules"],
    ["gateway.web"],
    ["gateway.config", "gateway.logs", "channels.registry"],
    ["gateway.app"],
    ["gateway.cli"],
]  # fmt: skip
FLOOR_OF = {package: number for number, floor in enumerate(FLOORS) for package in floor}
IMPLEMENTATIONS = set(FLOORS[2])
BRIDGE = ("gateway.app", "channels.registry")
OURS = ("gateway", "channels")
STANDARD = sys.stdlib_module_names
BARRED_FROM_DOMAIN = {"asyncio", "logging", "random", "secrets", "time", "threading", "socket"}


def modules(root: Path) -> dict[str, Path]:
    """Return every module of ours by its full name."""
    found = {}
    for package in OURS:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each imported name with its line, relative imports as a leading dot."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def package_of(name: str) -> str | None:
    """Return the package on a floor that a module or imported name belongs to."""
    parts = name.split(".")
    return next((p for n in (2, 1) if (p := ".".join(parts[:n])) in FLOOR_OF), None)


def violations(root: Path) -> list[str]:
    """Return a sentence for each import that breaks a floor."""
    return [
        f"{name}:{line} imports {imported}: {why}"
        for name, path in modules(root).items()
        for line, imported in imports(path)
        if (why := objection(name, imported))
    ]


def objection(importer: str, imported: str) -> str | None:
    """Return why this import may not be, or None."""
    if imported.startswith("."):
        return "relative"
    if importer.startswith("gateway.domain"):
        top = imported.split(".")[0]
        if top not in STANDARD and not imported.startswith("gateway.domain"):
            return "domain uses the standard library only"
        if top in BARRED_FROM_DOMAIN:
            return "domain has no clock, randomness, concurrency or logging"
    if imported.split(".")[0] not in OURS or importer in OURS:
        return None
    home, away = package_of(importer), package_of(imported)
    if home is None:
        return "the importer stands on no floor"
    if away is None:
        return "what is imported stands on no floor"
    if home == away:
        return None
    if FLOOR_OF[away] >= FLOOR_OF[home]:
        return "not a floor below"
    return _house_rules(importer, home, away)


def _house_rules(importer: str, home: str, away: str) -> str | None:
    if 3 <= FLOOR_OF[home] <= 6 and away in IMPLEMENTATIONS:
        return "services know ports, never implementations"
    if home.startswith("channels.") and away.startswith("gateway.") and away not in ("gateway.domain", "gateway.ports"):
        return "channels know gateway.domain and gateway.ports only"
    if home.startswith("gateway.") and away.startswith("channels.") and (home, away) != BRIDGE:
        return "gateway reaches channels in one line only: app to channels.registry"
    return None


def circle(root: Path) -> list[str] | None:
    """Return one circle of imports among our modules, or None."""
    known = modules(root)
    edges = {
        name: {target for _, imported in imports(path) if (target := _target(imported, known)) and target != name}
        for name, path in known.items()
    }
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> list[str] | None:
        if name in trail:
            return [*trail[trail.index(name) :], name]
        if name in done:
            return None
        found = next((c for t in sorted(edges[name]) if (c := visit(t, [*trail, name]))), None)
        done.add(name)
        return found

    return next((c for name in sorted(edges) if (c := visit(name, []))), None)


def _target(imported: str, known: Iterable[str]) -> str | None:
    return imported if imported in known else parent if (parent := imported.rpartition(".")[0]) in known else None


def test_every_import_respects_the_floors() -> None:
    assert violations(ROOT) == []


def test_no_modules_import_in_a_circle() -> None:
    assert circle(ROOT) is None


@pytest.mark.parametrize(
    ("module", "line", "why"),
    [
        ("gateway/domain/keys.py", "from gateway.ports.model import Model", "standard library only"),
        ("gateway/domain/keys.py", "import time", "no clock"),
        ("gateway/domain/keys.py", "import loguru", "standard library only"),
        ("gateway/ports/model.py", "from gateway.store.rows import encode", "not a floor below"),
        ("gateway/store/rows.py", "from gateway.media import files", "not a floor below"),
        ("gateway/turns/runner.py", "from gateway.store.rows import encode", "never implementations"),
        ("gateway/sessions/manager.py", "from gateway.delivery import lanes", "not a floor below"),
        ("channels/slack/adapter.py", "from gateway.turns import runner", "not a floor below"),
        ("channels/slack/adapter.py", "from gateway.config import Settings", "not a floor below"),
        ("channels/registry.py", "from gateway.sessions import manager", "gateway.domain and gateway.ports"),
        ("gateway/config/settings.py", "from channels.slack.options import SlackOptions", "one line only"),
        ("gateway/domain/keys.py", "from .errors import Refused", "relative"),
        ("gateway/strange.py", "from gateway.domain.keys import Route", "no floor"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, module: str, line: str, why: str) -> None:
    planted = tmp_path / module
    planted.parent.mkdir(parents=True)
    planted.write_text(f"def later() -> None:\n    {line}\n")
    assert any(why in sentence for sentence in violations(tmp_path))


def test_a_planted_circle_is_found(tmp_path: Path) -> None:
    package = tmp_path / "gateway" / "domain"
    package.mkdir(parents=True)
    (package / "one.py").write_text("from gateway.domain import two\n")
    (package / "two.py").write_text("from gateway.domain.three import x\n")
    (package / "three.py").write_text("import gateway.domain.one\n")
    names = [f"gateway.domain.{name}" for name in ("one", "two", "three", "one")]
    assert circle(tmp_path) == names
