"""Processor time of other programs while a worker ran."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

import psutil

IDLE = ("idle", "iowait", "steal", "guest", "guest_nice")  # guest time is also in user time


@dataclass(frozen=True)
class ProcessorTime:
    """Processor seconds so far: of all programs, and of this one and its ended children."""

    at: float
    everyone: float
    ours: float


def read_used() -> ProcessorTime:
    """Read the counters of the system and of this process."""
    import resource  # not on native Windows, where a run is refused with a reason

    times = psutil.cpu_times()._asdict()
    everyone = sum(seconds for kind, seconds in times.items() if kind not in IDLE)
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return ProcessorTime(time.monotonic(), everyone, sum(u.ru_utime + u.ru_stime for u in usages))


class BackgroundLoad:
    """A context manager around a worker's life; sets ``busy_cores`` at its end."""

    def __init__(self, read: Callable[[], ProcessorTime] = read_used) -> None:
        self._read = read
        self.busy_cores = 0.0

    def __enter__(self) -> "BackgroundLoad":
        self._began = self._read()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Set ``busy_cores``: the average number of cores that other programs used."""
        ended, began = self._read(), self._began
        others = (ended.everyone - began.everyone) - (ended.ours - began.ours)
        self.busy_cores = max(0.0, others / max(ended.at - began.at, 1e-9))
