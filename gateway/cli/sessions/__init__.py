"""`trunkline sessions`: finding, showing and keeping the stored sessions in order, beside a running gateway or without.

Exit codes are grep's: 0 for done, 1 for nothing found (no such session, no hit) or a question answered with no, 2 for
what was asked wrongly or cannot be done now. An empty `list` is an answer, not a failure.
"""

from __future__ import annotations

import typer

from gateway.cli.options import HELP, Plain, Sentences
from gateway.cli.sessions import changing, reading

sessions = typer.Typer(
    cls=Sentences,
    name="sessions",
    help="List, show, search and keep the stored sessions in order; beside a running gateway too.",
    no_args_is_help=True,
    context_settings=HELP,
)

sessions.command("list", cls=Plain)(reading.list_command)
for _command in (
    reading.show,
    reading.search,
    changing.rename,
    changing.pin,
    changing.archive,
    changing.close,
    changing.clear,
    changing.fork,
    changing.attach,
    changing.delete,
    reading.stats,
):
    sessions.command(cls=Plain)(_command)
