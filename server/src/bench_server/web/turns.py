"""Turns: what all clients share goes to each client network in turn."""

from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import Event


class Turns:
    """A semaphore of one event loop. ``most``: turns at once; ``each``: of these, a network's at
    most. Networks that wait get turns one after another, however many each waits for."""

    def __init__(self, most: int, each: int | None = None) -> None:
        self._most, self._each = most, each or most
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[Event]] = {}

    @asynccontextmanager
    async def turn(self, network: str) -> AsyncIterator[None]:
        """Wait for a turn, and hold it in the context."""
        await self.take(network)
        try:
            yield
        finally:
            self.release(network)

    async def take(self, network: str) -> None:
        mine = Event()
        self._waiting.setdefault(network, deque()).append(mine)
        self._give()
        try:
            await mine.wait()
        except BaseException:
            if mine.is_set():
                self.release(network)
            else:
                self._leave(network, mine)
            raise

    def release(self, network: str) -> None:
        self._held[network] -= 1
        if not self._held[network]:
            del self._held[network]
        self._give()

    def _give(self) -> None:
        while self._held.total() < self._most:
            free = (who for who in self._waiting if self._held[who] < self._each)
            if (network := next(free, None)) is None:
                return
            event = self._waiting[network].popleft()
            self._leave(network)
            self._held[network] += 1
            event.set()

    def _leave(self, network: str, event: Event | None = None) -> None:
        """Take an event out of a network's queue, and put the queue behind all others."""
        queue = self._waiting.pop(network)
        if event is not None:
            queue.remove(event)
        if queue:
            self._waiting[network] = queue
