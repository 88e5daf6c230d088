"""What the commands have in common: options that several take, exit codes, and how wrong use is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from gateway.domain.errors import Refused
from gateway.domain.text import visible

Config = Annotated[
    Path | None,
    typer.Option(help="The configuration file; else ./trunkline.toml, else trunkline.toml in the data directory."),
]
Data = Annotated[Path | None, typer.Option(help="The data directory; else TRUNKLINE_DATA, else the user's own.")]
ModelId = Annotated[
    str | None, typer.Option(help="The model to use, as provider:model; else the configuration's, else echo.")
]

FAILED = 1
WRONG_USE = 2
HELP = {"help_option_names": ["-h", "--help"]}


class Plain(TyperCommand):
    """A command whose help shows a flag as what it is: something without a value."""

    def get_params(self, ctx: Any) -> Any:
        """Return the options and arguments."""
        return _plain_flags(super().get_params(ctx))


class Sentences(TyperGroup):
    """Tells what is wrong with a command's options in one sentence, as everything else is told."""

    def get_params(self, ctx: Any) -> Any:
        """Return the options."""
        return _plain_flags(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except TyperException as error:
            raise Refused(visible(error.format_message())) from None


def _plain_flags(parameters: Sequence[Any]) -> Sequence[Any]:
    for parameter in parameters:
        # Typer writes `<bool>` after each flag, as if one could be given, unless there is another word for it.
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters
