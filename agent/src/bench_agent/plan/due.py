"""Which planned set-ups are due, and why: the environment changed, or the last run is old."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import takewhile

from bench_protocol.base.format import plural
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload.differences import differences, facts, several_in_words
from bench_protocol.payload.machine import Environment, Machine
from bench_protocol.payload.result import Result

from ..base.messages import Probe
from ..remote.outbox import Outbox
from .plan import Plan

# The server's history needs as many runs on each side of a change of speed.
RUNS_OF_A_LEVEL = 4
# The facts that are known before a worker runs. Libraries and settings follow from these.
KNOWN_BEFORE = ("machine.", "environment.python", "environment.packages.")

Facts = Mapping[str, str]


def due(
    plan: Plan,
    probes: Mapping[tuple[str | None, str], Probe],
    machine: Machine,
    outbox: Outbox,
    every: timedelta,
    now: datetime,
) -> dict[Cell, str]:
    """The set-ups of a plan that are due on this machine, each with the reason in words; ``every``:
    the longest time between two runs in an unchanged environment."""
    reasons = {}
    for planned in plan.cells:
        software = probes[planned.python, planned.cell.framework].environment
        if software is None:  # a framework with devices always reports its environment
            continue
        present = _known_before(machine, software)
        results = _results(outbox, planned.cell, machine)
        if why := _why_due(results, present, machine.os.name, every, now):
            reasons[planned.cell] = why
    return reasons


def _why_due(
    results: Iterator[Result], present: Facts, system: str, every: timedelta, now: datetime
) -> str | None:
    """Why a set-up is due, or None. ``results``: on this machine, newest first."""
    last = next(results, None)
    if last is None:
        return "no run yet"
    if changed := differences(_facts(last), present):
        return several_in_words(changed, system)
    runs = {last.run_id}
    for result in takewhile(lambda result: _facts(result) == present, results):
        runs.add(result.run_id)
        if len(runs) == RUNS_OF_A_LEVEL:
            break
    if len(runs) < RUNS_OF_A_LEVEL:
        return f"{len(runs)} of {RUNS_OF_A_LEVEL} runs in this environment"
    age = now - datetime.fromisoformat(last.clocks.started)
    return f"last run {plural(age.days, 'day')} ago" if age >= every else None


def _known_before(machine: Machine, software: Environment) -> dict[str, str]:
    return {
        name: value
        for name, value in facts(machine, software).items()
        if name.startswith(KNOWN_BEFORE)
    }


def _facts(result: Result) -> dict[str, str]:
    return _known_before(result.machine, result.environment)


def _results(outbox: Outbox, cell: Cell, machine: Machine) -> Iterator[Result]:
    """This machine's results of a cell, newest first, without those of workers that died before
    they reported their software."""
    for entry in outbox.of_cell(cell):
        result = entry.result()
        if result.machine.machine_hash == machine.machine_hash and result.environment.packages:
            yield result
