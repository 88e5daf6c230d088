"""The commands and their options."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from typing import Annotated

import typer

from gateway.cli.doctor import doctor
from gateway.cli.moving.exporting import export
from gateway.cli.moving.importing import imports
from gateway.cli.options import FAILED, HELP, WRONG_USE, Config, Data, ModelId, Plain
from gateway.cli.phrases import phrases
from gateway.cli.replaying import replay
from gateway.cli.sessions import sessions
from gateway.domain.errors import TrunklineError

app = typer.Typer(
    name="trunkline",
    help="A chat-channel bot gateway: it answers and remembers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=HELP,
)

app.add_typer(sessions)
app.add_typer(imports)
app.command(cls=Plain)(export)
app.command(cls=Plain)(replay)
app.command(cls=Plain)(doctor)
app.command(cls=Plain)(phrases)


def main() -> None:
    """Run the command line; what a person can mend is one sentence on standard error, with exit code 2."""
    try:
        app()
    except TrunklineError as error:
        typer.echo(f"trunkline: {error}", err=True)
        sys.exit(WRONG_USE)


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """A chat-channel bot gateway: it answers and remembers."""
    if show:
        typer.echo(f"trunkline {metadata.version('trunkline')}")
        raise typer.Exit


@app.command()
def run(
    config: Config = None,
    data: Data = None,
    model: ModelId = None,
    port: Annotated[int | None, typer.Option(help="The port of the HTTP server; else 8420.")] = None,
) -> None:
    """Run the gateway: every configured channel, the HTTP server, and on a terminal a chat."""
    from gateway.cli.running import run_command

    run_command(config=config, data=data, model=model, port=port, environment=os.environ)


@app.command()
def chat(
    name: Annotated[str, typer.Argument(help="Which chat to go on with; each name is a conversation of its own.")] = "",
    config: Config = None,
    data: Data = None,
    model: ModelId = None,
) -> None:
    """Chat here, alone or beside a running gateway. Piped input is one message; its answer is all that is printed."""
    from gateway.cli.running import chat_command

    if not chat_command(name, config=config, data=data, model=model, environment=os.environ):
        raise typer.Exit(FAILED)
