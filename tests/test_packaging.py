"""What the package asks for, what it pins and what it ships."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import hatchling.build
import pytest
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OURS = {"gateway", "channels", "tests", "bench"}
BASE, DEV = "", "dev"
PLATFORMS = ("slack", "telegram")
COMING = {"postgres", "mcp"}
"""Extras whose code is not written yet."""
TOOLS = {
    "coverage", "mypy", "pytest-asyncio", "pytest-timeout", "pytest-xdist", "ruff", "types-psutil",
}  # fmt: skip
"""What is run, or is loaded by what is run, and never imported."""
FOLDERS = {
    "gateway": (BASE,),
    "channels": (BASE,),
    **{f"channels/{kind}": (BASE, kind) for kind in PLATFORMS},
    "tests": (BASE, DEV),
    **{f"tests/channels/{kind}": (BASE, DEV, kind) for kind in PLATFORMS},
    **{f"tests/contracts/rigs/{kind}.py": (BASE, DEV, kind) for kind in PLATFORMS},
    "bench": (BASE, DEV),
}
"""Which groups the code in a folder may use; the longest folder that fits counts."""

Names = set[NormalizedName]


def requirements() -> dict[str, list[Requirement]]:
    """Return what is declared, by group."""
    project = PROJECT["project"]
    groups = {BASE: project["dependencies"], **project["optional-dependencies"]}
    return {group: [Requirement(line) for line in lines] for group, lines in groups.items()}


def declared() -> dict[str, Names]:
    """Return the names of what is declared, by group."""
    return {group: {canonicalize_name(line.name) for line in lines} for group, lines in requirements().items()}


def imported(path: Path) -> Iterator[str]:
    """Yield the top-level names a file imports that are neither ours nor Python's."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        tops = {name.partition(".")[0] for name in names}
        yield from tops - OURS - sys.stdlib_module_names


def uses() -> Iterator[tuple[Path, NormalizedName]]:
    """Yield each file with each distribution that it imports."""
    distributions = metadata.packages_distributions()
    for folder in sorted(OURS):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for name in imported(path):
                yield path.relative_to(ROOT), canonicalize_name(distributions[name][0])


def groups_for(path: Path) -> tuple[str, ...]:
    """Return the groups that the code at a path may use."""
    fitting = [folder for folder in FOLDERS if path.is_relative_to(folder)]
    return FOLDERS[max(fitting, key=len)]


def pins() -> dict[NormalizedName, str]:
    """Return the pinned version of each distribution."""
    lines = (ROOT / ".constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines]
    return {canonicalize_name(name): version for name, version in pairs}


def needed() -> Names:
    """Return every installed distribution that we need, ours declared and theirs in turn."""
    found: Names = set()
    waiting = [line for lines in requirements().values() for line in lines]
    waiting += [Requirement(line) for line in PROJECT["build-system"]["requires"]]
    seen: set[tuple[NormalizedName, str]] = set()
    while waiting:
        line = waiting.pop()
        for extra in ("", *line.extras):
            key = (canonicalize_name(line.name), extra)
            if key not in seen:
                seen.add(key)
                found.add(key[0])
                theirs = (Requirement(each) for each in metadata.requires(line.name) or [])
                waiting += [each for each in theirs if each.marker is None or each.marker.evaluate({"extra": extra})]
    return found


def test_what_is_imported_is_declared_in_its_group() -> None:
    groups = declared()
    assert [
        f"{path} imports {name}"
        for path, name in uses()
        if all(name not in groups[group] for group in groups_for(path))
    ] == []


def test_what_is_declared_is_imported() -> None:
    for group, names in declared().items():
        used = {name for path, name in uses() if group in groups_for(path)}
        if group == BASE:
            used = {name for path, name in uses() if path.parts[0] in ("gateway", "channels")}
        if group in COMING:
            assert not names & used, f"{group} has come: take it out of the list"
        else:
            assert names - used - TOOLS == set(), group


def test_every_tool_in_the_list_is_declared() -> None:
    assert declared()[DEV] >= TOOLS


def test_each_requirement_has_a_lower_bound_that_is_met() -> None:
    for lines in requirements().values():
        for line in lines:
            assert ">=" in str(line.specifier)
            assert line.specifier.contains(metadata.version(line.name))


def test_constraints_pin_by_name_and_version_alone() -> None:
    text = (ROOT / ".constraints.txt").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9a-z.+!]+", line)] == []
    assert lines == sorted(set(lines), key=lambda line: line.split("=="))
    assert not pins().keys() & {"trunkline", "pip", "setuptools", "uv"}


def test_constraints_pin_everything_we_need_at_what_is_installed() -> None:
    installed = {name: metadata.version(name) for name in needed()}
    assert {name: pins().get(name) for name in installed} == installed


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="another Python may need less than what was pinned with 3.11"
)
def test_constraints_pin_nothing_else() -> None:
    # An editable installation needs it, in an environment of its own.
    assert pins().keys() - needed() == {"editables"}


def test_the_wheel_holds_what_is_no_code_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with zipfile.ZipFile(tmp_path / hatchling.build.build_wheel(str(tmp_path))) as wheel:
        shipped = set(wheel.namelist())
    data = {"gateway/py.typed", "channels/py.typed", "gateway/tokens/o200k_base.tiktoken.gz", "gateway/tokens/NOTICE"}
    migrations = {path.relative_to(ROOT).as_posix() for path in (ROOT / "gateway/store").rglob("*.sql")}
    code = {path.relative_to(ROOT).as_posix() for top in ("gateway", "channels") for path in (ROOT / top).rglob("*.py")}
    assert migrations
    assert data | migrations | code <= shipped
    assert {name.partition("/")[0] for name in shipped} == {"gateway", "channels", "trunkline-0.1.0.dist-info"}


def test_the_command_is_there() -> None:
    (command,) = metadata.entry_points(group="console_scripts", name="trunkline")
    assert callable(command.load())
