"""Whether a cell is to be measured again, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from bench_protocol.payload.differences import Difference, differences
from bench_protocol.payload.differences import facts as facts_of
from bench_protocol.payload.machine import Environment, Machine

from .history import CellRun, counted

# What is known before a worker has run: libraries and settings follow from these.
READ_BEFORE = ("machine.", "environment.python", "environment.packages.")
# Runs that fail or are disturbed are repeated, up to this many for each run that is needed.
ATTEMPTS = 2

Kind = Literal["changed", "few_runs", "age"]


@dataclass(frozen=True)
class Schedule:
    """How often a cell is measured.

    ``needed``: runs in an environment before its verdict. ``every``: time between later runs.
    """

    needed: int
    every: timedelta


@dataclass(frozen=True)
class Reason:
    """Why a cell is due. ``changed``: what differs from its last run; ``runs``: with a figure in
    the present environment; ``age``: of the last run, None without one."""

    kind: Kind
    changed: tuple[Difference, ...] = ()
    runs: int = 0
    age: timedelta | None = None


def present_facts(machine: Machine, software: Environment) -> dict[str, str]:
    """The facts of this machine now, as far as they are known before a worker runs.

    Args:
        software: of the cell's framework and interpreter, as its probe reports it.
    """
    return _read_before(facts_of(machine, software))


def due(
    runs: Sequence[CellRun], present: Mapping[str, str], schedule: Schedule, now: datetime
) -> Reason | None:
    """Why a cell is due now, or None.

    Args:
        runs: of the cell, oldest first.
        present: :func:`present_facts`.
    """
    if not runs:
        return Reason("few_runs")
    age = now - datetime.fromisoformat(runs[-1].started)
    if changed := differences(_read_before(runs[-1].facts), present):
        return Reason("changed", changed, age=age)
    since = runs_since_change(runs)
    figures = len(counted(since))
    if figures < schedule.needed and len(since) < ATTEMPTS * schedule.needed:
        return Reason("few_runs", runs=figures, age=age)
    return Reason("age", runs=figures, age=age) if age >= schedule.every else None


def runs_since_change(runs: Sequence[CellRun]) -> Sequence[CellRun]:
    """The newest runs, as far back as they are all of one environment."""
    start = len(runs)
    while start and runs[start - 1].facts == runs[-1].facts:
        start -= 1
    return runs[start:]


def _read_before(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in facts.items() if name.startswith(READ_BEFORE)}
