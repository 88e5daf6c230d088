"""Work that must not be left half done: calls that block, and steps that belong together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from gateway.domain.errors import Unavailable

P = ParamSpec("P")
T = TypeVar("T")


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` to its end, whatever happens to the caller; only then is the caller's cancellation raised."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    if not task.cancelled():
        # Looked at, so that it is not reported as lost: the cancellation goes first.
        task.exception()
    raise cancelled


async def blocking(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `function` in a thread, to its end; what the system refuses is raised as `Unavailable`.

    A thread cannot be cancelled, so nobody may clean up after it before it is done.
    """
    try:
        return await finished(asyncio.to_thread(function, *args, **kwargs))
    except OSError as error:
        raise Unavailable(f"files cannot be kept or read at the moment: {error.strerror or error}") from error
