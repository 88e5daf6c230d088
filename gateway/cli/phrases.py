"""`trunkline phrases`: what the gateway itself says, as a file to put other words into."""

from __future__ import annotations

import os

from gateway.cli.options import Config, Data
from gateway.cli.printing import output


def phrases(config: Config = None, data: Data = None) -> None:
    """Print what the gateway itself says, as a file to edit and to name in `gateway.phrases`."""
    from gateway.app.sessions import read_settings
    from gateway.config.phrases import toml_lines

    found = read_settings(config, data, os.environ).phrases
    with output() as out:
        # Whatever the terminal reads, TOML is UTF-8.
        out.buffer.write("".join(f"{line}\n" for line in toml_lines(found)).encode())
        out.buffer.flush()
