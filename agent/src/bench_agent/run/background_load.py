"""Processor time of other programs while a worker ran."""

import time
from dataclasses import dataclass

import psutil

IDLE = ("idle", "iowait", "steal", "guest", "guest_nice")  # guest time is also in user time


@dataclass(frozen=True)
class ProcessorTime:
    """Processor seconds so far: of all programs, and of this one and its ended children."""

    at: float
    everyone: float
    ours: float


def read_used() -> ProcessorTime:
    import resource  # not on native Windows, where a run is refused with a reason

    times = psutil.cpu_times()._asdict()
    everyone = sum(seconds for kind, seconds in times.items() if kind not in IDLE)
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return ProcessorTime(time.monotonic(), everyone, sum(u.ru_utime + u.ru_stime for u in usages))


def busy_cores(began: ProcessorTime, ended: ProcessorTime) -> float:
    """The average number of cores that other programs used between two readings."""
    others = (ended.everyone - began.everyone) - (ended.ours - began.ours)
    return max(0.0, others / max(ended.at - began.at, 1e-9))
