"""Wait until the projector has applied an entry: one query for all who wait."""

import asyncio
from contextlib import suppress

from anyio.lowlevel import RunVar

from ..db.store import UNAVAILABLE, Store
from .as_of import projected
from .threads import in_own_thread

POLL_SECONDS = 0.05


class PositionWatch:
    """Those of one event loop who wait, each for the entry whose index it names."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._watcher: asyncio.Task[None] | None = None

    async def applied(self, store: Store, log_index: int, seconds: float) -> None:
        """Return when an entry is applied, or after this number of seconds."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting[waiting] = log_index
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.create_task(self._watch(store))
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(waiting, seconds)
        finally:
            del self._waiting[waiting]

    async def _watch(self, store: Store) -> None:
        while self._waiting:
            with suppress(*UNAVAILABLE):
                at = (await in_own_thread(projected, store)).next_index
                for waiting, log_index in self._waiting.items():
                    if log_index < at and not waiting.done():
                        waiting.set_result(None)
            await asyncio.sleep(POLL_SECONDS)


def watch() -> PositionWatch:
    """The watch of this event loop."""
    try:
        return _WATCH.get()
    except LookupError:
        _WATCH.set(made := PositionWatch())
        return made


_WATCH: RunVar[PositionWatch] = RunVar("position_watch")
