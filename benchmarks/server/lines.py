"""What a benchmark finds out: lines of one table, notes under it, and the steps that give them."""

import os
import platform
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import NamedTuple

from rich.console import Console

from bench_protocol.base.format import markdown

from .load import Load

HEADINGS = ("", "stored", "workers", "clients", "a second", "p50 ms", "p99 ms", "CPU ms", "MiB")
PACKAGES = ("fastapi", "uvicorn", "SQLAlchemy", "pydantic", "psycopg")


@dataclass(frozen=True)
class Line:
    """A line of the table. ``cpu_ms``: processor time of the server's processes for each
    submission or answer, which other work on the machine moves less than it moves the rates;
    ``resident_mib``: the most they held together meanwhile. A database's own is in neither."""

    what: str
    stored: int
    workers: int
    clients: int
    load: Load
    cpu_ms: float
    resident_mib: float

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            self.what,
            f"{self.stored:,}",
            str(self.workers),
            str(self.clients),
            f"{self.load.per_second:,.0f}",
            f"{self.load.p50_ms:.1f}",
            f"{self.load.p99_ms:.1f}",
            f"{self.cpu_ms:.2f}",
            f"{self.resident_mib:,.0f}",
        )


Found = Iterable[Line | str]


class Step(NamedTuple):
    """A part of the whole: what it does, about how long it takes, and how to do it."""

    words: str
    seconds: float
    run: Callable[[], Found]


def found_by(steps: Sequence[Step], console: Console) -> list[Line | str]:
    """Do the steps in turn; say which is next, what came of each, and how long the rest takes."""
    found: list[Line | str] = []
    began, pace = time.monotonic(), 1.0
    for number, step in enumerate(steps):
        left = pace * sum(later.seconds for later in steps[number:])
        console.print(f"{number + 1} of {len(steps)}: {step.words}; about {_minutes(left)} left")
        for item in step.run():
            console.print(" | ".join(item.cells) if isinstance(item, Line) else item, style="dim")
            found.append(item)
        pace = (time.monotonic() - began) / sum(earlier.seconds for earlier in steps[: number + 1])
    return found


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def table(found: Sequence[Line | str]) -> str:
    """All lines as one table, in Markdown."""
    return markdown(HEADINGS, (item.cells for item in found if isinstance(item, Line)))


def versions() -> str:
    """Of what the server stands on."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"Python {platform.python_version()}, {packages}, SQLite {sqlite3.sqlite_version}"


def state() -> str:
    """Which machine it is, when, and how busy."""
    load_average = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    machine = f"{os.cpu_count()} x {platform.machine()}, {platform.system()}"
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine}, load {load_average}"
