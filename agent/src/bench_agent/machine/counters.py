"""What psutil reads of the whole system; None for what it cannot read.

psutil parses text of the kernel, so a kernel that writes it otherwise makes it raise anything
(``IndexError`` from a ``/proc/meminfo`` that ends in zero bytes). This is the one module that calls
it. Use and load are of the cores that this process may use. Where it has a share of their time
(``cpu.max``), other groups' work on them says nothing about this one, so both are unknown.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psutil

from . import cgroup
from .text import file_text, whole_or_none
from .topology import parse_list

Value = TypeVar("Value")
# Times of a core in which it does nothing for this system. Guest time is also in user time.
IDLE = ("idle", "iowait", "steal", "guest", "guest_nice")


def _read(question: Callable[[], Value]) -> Value | None:
    try:
        return question()
    except Exception:
        return None


def _own(of_cores: Sequence[Value]) -> Sequence[Value]:
    """Those of this process's cores, from one value for each core that is online; none where it
    has a share of them, or where these are not the cores that the system has."""
    if cgroup.quota_cores() is not None:
        return ()
    own, numbers = own_cores(), online()
    if own is None or len(own) == len(of_cores):
        return of_cores
    if len(numbers) != len(of_cores):
        return ()
    return [one for number, one in zip(numbers, of_cores, strict=True) if number in own]


def own_cores() -> set[int] | None:
    """Numbers of the cores that this process may use; None where the system does not say."""
    return _read(lambda: os.sched_getaffinity(0))


def online() -> list[int]:
    """Numbers of the cores that are online, in the order of the system's counters."""
    return parse_list(file_text("/sys/devices/system/cpu/online"))


def cores(*, logical: bool) -> int | None:
    return whole_or_none(_read(lambda: psutil.cpu_count(logical=logical)))


def busy_percent(seconds: float | None = None) -> float | None:
    """Mean use of this process's cores since the last call, or over the next ``seconds``."""
    used = _own(_read(lambda: psutil.cpu_percent(seconds, percpu=True)) or ())
    return sum(used) / len(used) if used else None


def busy_seconds() -> float | None:
    """Processor seconds so far of all programs, on this process's cores."""
    own = _own(_read(lambda: psutil.cpu_times(percpu=True)) or ())
    busy = (sum(s for kind, s in times._asdict().items() if kind not in IDLE) for times in own)
    return sum(busy) if own else None


def load_average() -> float | None:
    """Mean number of runnable tasks over a minute; None where this process has some of the cores
    only, because the system counts the tasks of all."""
    every = range(cores(logical=True) or 0)
    if len(_own(every)) < max(1, len(every)):
        return None
    return _read(lambda: psutil.getloadavg()[0])


def memory(kind: str) -> int | None:
    """Bytes of the machine's memory: ``total``, ``available`` or ``used``."""
    return whole_or_none(_read(lambda: getattr(psutil.virtual_memory(), kind)))


def page_bytes() -> int | None:
    """Bytes of a page of memory, which the kernel was built with: 4, 16 or 64 KiB."""
    return whole_or_none(_read(lambda: os.sysconf("SC_PAGE_SIZE")))


def temperatures() -> dict[str, list[Any]]:
    """Readings by driver; none on macOS and in most containers."""
    return _read(lambda: psutil.sensors_temperatures()) or {}
