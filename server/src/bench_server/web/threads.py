"""Threads for what asks the database outside of a request's session.

Requests with sessions hold connections, and need a thread of the common ones to end. If others took
all of these and waited for a connection there, nobody would go on: with a pooler of three
connections two requests did that.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

Done = TypeVar("Done")
THREADS = 16
_LIMITER: RunVar[CapacityLimiter] = RunVar("threads")


async def in_own_thread(function: Callable[..., Done], *arguments: Any) -> Done:
    """Call a function in one of THREADS, which nothing else uses."""
    try:
        limiter = _LIMITER.get()
    except LookupError:
        _LIMITER.set(limiter := CapacityLimiter(THREADS))
    return await to_thread.run_sync(function, *arguments, limiter=limiter)
