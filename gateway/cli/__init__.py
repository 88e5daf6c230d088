"""The command line. Importing it loads no channel, model or web library: each command loads what it needs."""

from gateway.cli.main import main

__all__ = ["main"]
