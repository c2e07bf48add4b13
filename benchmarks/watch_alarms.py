"""How often ``bench-agent watch`` raises an alarm: simulated histories with and without a change.

``python -m benchmarks.watch_alarms [HISTORIES]`` prints a row for each kind of history. Times are
log-normal: each start has a noise of its own, each run within a start another. An alarm is a cell
that a start reports as slower (exit code 1).
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from bench_agent.watch.history import CellRun
from bench_agent.watch.moved import find

BEGAN = datetime(2026, 1, 5, 3, tzinfo=UTC)
NEEDED = 5


@dataclass(frozen=True)
class Noise:
    """Standard deviations of the logarithm: between starts, and between runs of one start."""

    starts: float
    runs: float


@dataclass(frozen=True)
class History:
    """A watched machine: ``starts`` starts, each of ``runs`` runs of ``cells`` cells; the
    environment changes before start ``change`` and with it (or at ``silent``, where nothing else
    changes) the time of every cell by ``factor``."""

    starts: int
    runs: int = 1
    cells: int = 1
    change: int | None = None
    silent: int | None = None
    factor: float = 1.0


def times(history: History, noise: Noise, random: np.random.Generator) -> NDArray[np.float64]:
    """Nanoseconds a sample, by cell, start and run."""
    shape = (history.cells, history.starts, history.runs)
    logs = random.normal(0, noise.starts, (*shape[:2], 1)) + random.normal(0, noise.runs, shape)
    slower = history.change if history.silent is None else history.silent
    if slower is not None:
        logs[:, slower:] += np.log(history.factor)
    values: NDArray[np.float64] = 1000 * np.exp(logs)
    return values


def reports(history: History, values: NDArray[np.float64]) -> Iterator[set[str]]:
    """After each start: ``slower`` and ``faster``, as the watch reports them of any cell."""
    runs: dict[int, list[CellRun]] = {cell: [] for cell in range(history.cells)}
    for start in range(history.starts):
        reported = {cell: past[-1].started for cell, past in runs.items() if past}
        environment = "old" if history.change is None or start < history.change else "new"
        for cell, past in runs.items():
            for run in range(history.runs):
                at = BEGAN + timedelta(days=start, hours=run)
                facts = {"machine.gpus.0.driver": environment}
                figure = float(values[cell, start, run])
                past.append(CellRun(f"{start}-{run}", at.isoformat(), facts, figure))
        moved = (finding.moved for finding in find(runs, NEEDED, reported).values())
        yield {way for way in moved if way}


def share(history: History, noise: Noise, count: int, seed: int) -> float:
    """The share of histories with an alarm."""
    random = np.random.default_rng(seed)
    alarms = 0
    for _ in range(count):
        alarms += any("slower" in said for said in reports(history, times(history, noise, random)))
    return alarms / count


QUIET, HOURLY = Noise(0.0, 0.02), Noise(0.02, 0.01)
YEAR = 57  # five runs and a year of weekly ones
ROWS: dict[str, tuple[History, Noise]] = {
    "a year, nothing changes": (History(YEAR), QUIET),
    "a year, a driver without effect at start 26": (History(YEAR, change=26), QUIET),
    "a driver without effect": (History(10, change=5), QUIET),
    "a driver without effect, 8 cells": (History(10, change=5, cells=8), QUIET),
    "the same, 5 runs in each of 2 starts (--now)": (History(2, runs=5, change=1), HOURLY),
    "the same, 1 run in each of 10 starts": (History(10, change=5), HOURLY),
    "a driver that costs 5 %": (History(10, change=5, factor=1.05), QUIET),
    "a driver that costs 10 %": (History(10, change=5, factor=1.1), QUIET),
    "a driver that costs 10 %, 8 cells": (History(10, change=5, factor=1.1, cells=8), QUIET),
    "5 % lost at start 20 of 40, nothing changed": (History(40, silent=20, factor=1.05), QUIET),
    "a year, nothing changes, 8 cells": (History(YEAR, cells=8), QUIET),
}


def main(count: int) -> None:
    print(f"{'history':48}{'alarms':>8}   {count} histories each")
    for name, (history, noise) in ROWS.items():
        print(f"{name:48}{share(history, noise, count, seed=count):8.3f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
