"""`trunkline doctor`: what is there, what is wrong, and what to do about it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from gateway.cli import tables
from gateway.cli.columns import table
from gateway.cli.options import FAILED, Config, Data
from gateway.cli.printing import plain, print_json, print_lines
from gateway.cli.sessions.access import Json
from gateway.domain.text import one_line

if TYPE_CHECKING:
    from gateway.app.doctor import Finding
    from gateway.config.settings import Settings

INDENT = "  "


def doctor(as_json: Json = False, data: Data = None, config: Config = None) -> None:
    """Look whether all is well, and tell what to do where it is not. Changes nothing and calls nobody.

    Works beside a running gateway and without one. Exits with 1 if anything is wrong; a warning is only news.
    """
    from gateway.app.doctor import Grade, read_configuration

    settings, configuration = read_configuration(config, data, os.environ)
    findings = [configuration, *(_look(settings) if settings is not None else ())]
    if as_json:
        print_json(map(plain, findings))
    else:
        print_lines(_lines(findings))
    if any(finding.mark is Grade.WRONG for finding in findings):
        raise typer.Exit(FAILED)


def _look(settings: Settings) -> Sequence[Finding]:
    from gateway.app.doctor import look
    from gateway.logs.setup import configure

    undo = configure(level="warning", secrets=settings.secrets(), brief=True)
    try:
        return asyncio.run(look(settings, os.environ, datetime.now(UTC)))
    finally:
        undo()


def _lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield a line a check, and then of each problem all there is to know."""
    widest = max(len(finding.check) for finding in findings)
    for finding in findings:
        yield f"{finding.mark:<5}  {finding.check:<{widest}}  {one_line(finding.found)}"
    for finding in findings:
        if finding.todo:
            yield ""
            yield f"{finding.check}: {one_line(finding.found)}"
            yield from (f"{INDENT}{line}" for line in _details(finding.details))
            yield f"{INDENT}→ {one_line(finding.todo)}"


def _details(details: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    """Return details as a table; not cut to a terminal's width, since each word of them may be the one that helps."""
    names = [name for name in details[0] if any(detail[name] for detail in details)] if details else []
    rows = [[_shown(detail[name]) for name in names] for detail in details]
    return table([name.upper() for name in names], rows, columns=None, numbers=("COUNT",)) if names else ()


def _shown(value: Any) -> str:
    return f"{tables.moment(value)} UTC" if isinstance(value, datetime) else str(value)
