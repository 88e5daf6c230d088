"""All checks, in the order in which one who looks for a fault would make them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

from gateway.app.doctor import contents, file, installation
from gateway.app.doctor.findings import Finding
from gateway.config.settings import Settings


async def look(settings: Settings, environment: Mapping[str, str], now: datetime) -> Sequence[Finding]:
    """Return what is found of an installation whose configuration can be read.

    What a store holds is looked at where there is one that can be read.
    """
    is_running, gateway = installation.check_gateway(settings)
    is_readable, store = await asyncio.to_thread(file.check_file, settings)
    return [
        installation.check_data(settings),
        store,
        gateway,
        installation.check_models(settings, environment, is_running=is_running),
        *installation.check_channels(settings, environment, is_running=is_running),
        *(await contents.check_contents(settings, now, is_running=is_running) if is_readable else ()),
    ]
