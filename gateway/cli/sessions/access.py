"""What the commands on sessions share: opening the store, finding a session, and telling what was done."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from gateway.cli import tables
from gateway.cli.columns import cell
from gateway.cli.options import FAILED
from gateway.cli.printing import hint, print_json, print_lines
from gateway.domain.errors import NotFound
from gateway.domain.text import whole

if TYPE_CHECKING:
    from gateway.config.settings import Settings
    from gateway.domain.session import Session
    from gateway.sessions import SessionManager

Json = Annotated[bool, typer.Option("--json", help="Print a list of JSON objects, for programs.")]
Ref = Annotated[str, typer.Argument(help="A session: its id, the first 6 or more characters of it, or its key.")]

T = TypeVar("T")


def with_settings(config: Path | None, data: Path | None, work: Callable[[Settings], Awaitable[T]]) -> T:
    """Read the settings and do the work. What is not found is a sentence and an exit code of its own."""
    from gateway.app.sessions import read_settings
    from gateway.logs.setup import configure

    settings = read_settings(config, data, os.environ)

    async def body() -> T:
        return await work(settings)

    undo = configure(level="warning", secrets=settings.secrets(), brief=True)
    try:
        return asyncio.run(body())
    except NotFound as error:
        hint(f"trunkline: {error}")
        raise typer.Exit(FAILED) from None
    finally:
        undo()


def with_sessions(config: Path | None, data: Path | None, work: Callable[[SessionManager], Awaitable[T]]) -> T:
    """Open the store, do the work and close it."""

    async def body(settings: Settings) -> T:
        from gateway.app.sessions import open_sessions, session_manager

        async with open_sessions(settings) as port:
            return await work(session_manager(port))

    return with_settings(config, data, body)


async def find(manager: SessionManager, ref: str) -> Session:
    """Return the session that a REF of a person names."""
    from gateway.app.sessions import find_session

    return await find_session(manager, whole(ref))


def tell(what: str, session: Session, as_json: bool, **more: Any) -> None:
    """Say what was done to a session; a program gets the session, with what `more` there is to know."""
    if as_json:
        print_json([{**tables.header_data(session), **more}])
    else:
        print_lines([f"{what}: {cell(tables.name(session))} ({session.key}, {session.id})"])
