"""Apply a function to many items: in this process, or on the workers of a Dask scheduler.

The functions are pure, so both give the same. No key and no database address is part of a task.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from bench_protocol.base import scheduler
from bench_protocol.base.scheduler import SchedulerProblem

from . import __version__

EXTRA = "./server[cluster]"
# Tasks in progress for each thread of a worker: one runs, one waits beside it.
AHEAD = 2
LOOK_SECONDS = 1.0
PATIENCE_SECONDS = 60.0
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class Map(Protocol):
    """Yields a function's outcomes in the order of the items; what the function raises, it
    raises."""

    def __call__(
        self, function: Callable[[Item], Outcome], items: Iterable[Item], /
    ) -> Iterator[Outcome]: ...


def in_process(function: Callable[[Item], Outcome], items: Iterable[Item]) -> Iterator[Outcome]:
    """A :class:`Map` without workers."""
    return map(function, items)


class Workers:
    """The workers of a scheduler. A lost worker's tasks run again on the others.

    Args:
        client: a ``distributed.Client``.
        patience_seconds: how long tasks wait while there is no worker.
    """

    def __init__(self, client: Any, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._client = client
        self._patience_seconds = patience_seconds

    @property
    def threads(self) -> int:
        """Threads of all workers: how many tasks run at a time."""
        return sum(self._client.nthreads().values())

    def map(
        self, function: Callable[[Item], Outcome], items: Iterable[Item], /
    ) -> Iterator[Outcome]:
        """A :class:`Map` on the workers. It takes items as workers become free.

        Raises:
            SchedulerProblem: the scheduler is gone, no worker came, or a task ends its workers.
        """
        waiting: deque[Any] = deque()
        for item in items:
            waiting.append(self._submit(function, item))
            if len(waiting) > AHEAD * self.threads:
                yield self._outcome(waiting.popleft())
        while waiting:
            yield self._outcome(waiting.popleft())

    def call(self, function: Callable[..., Outcome], *arguments: Any) -> Outcome:
        """A function's outcome, computed by a worker.

        Raises:
            SchedulerProblem: as :meth:`map`.
        """
        outcome: Outcome = self._outcome(self._submit(function, *arguments))
        return outcome

    def close(self) -> None:
        """End the connection. A call that waits for an outcome raises SchedulerProblem."""
        self._client.close()

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        from distributed.client import ClosedClientError

        closed = SchedulerProblem("the connection to the scheduler is closed")
        if self._client.status != "running":
            raise closed
        try:
            # In the scheduler's hands, arguments outlive a worker; "pure" would hash them all.
            return self._client.submit(function, *arguments, pure=False)
        except ClosedClientError:  # by another thread, meanwhile
            raise closed from None

    def _outcome(self, future: Any) -> Any:
        from distributed import KilledWorker

        idle_seconds = 0.0
        while True:
            try:
                return future.result(timeout=LOOK_SECONDS)
            except KilledWorker:
                raise SchedulerProblem(
                    "a task ended several workers; their logs say why (memory, most often)"
                ) from None
            except (CancelledError, OSError, RuntimeError) as error:
                if future.status == "error":
                    return future.result()  # raises the task's own
                if not isinstance(error, TimeoutError):
                    raise SchedulerProblem(f"the scheduler is lost: {error}") from error
            idle_seconds = 0.0 if self.threads else idle_seconds + LOOK_SECONDS
            if idle_seconds >= self._patience_seconds:
                raise SchedulerProblem(
                    f"the scheduler has had no worker for {idle_seconds:.0f} s; "
                    "start one with: dask worker ADDRESS"
                )


@contextmanager
def workers_at(address: str) -> Iterator[Workers]:
    """The workers of the scheduler at an address, which all have this version of bench-server.

    Raises:
        SchedulerProblem: it cannot be used, it has no worker, or a worker has another version.
    """
    client = scheduler.connect(address, EXTRA)
    try:
        try:
            client.wait_for_workers(1, timeout=scheduler.CONNECT_SECONDS)
        except TimeoutError:
            raise SchedulerProblem(
                f"{address} has no worker; start one with: dask worker {address}"
            ) from None
        versions = client.run(version, on_error="return")
        for worker, found in versions.items():
            if found != __version__:
                raise SchedulerProblem(
                    f"worker {worker} has no bench-server {__version__} ({found}); install it there"
                )
        yield Workers(client)
    finally:
        client.close()


def version() -> str:
    """The version of bench-server that a worker has."""
    return __version__
