"""One start of ``watch``: measure what is due, then say what moved."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload.machine import Machine

from ..base.errors import NotIdle
from ..plan.plan import Plan
from ..remote.outbox import Outbox
from ..run.probe import Answers
from ..run.summary import RunSummary
from . import reported
from .due import Reason, Schedule, due, present_facts
from .history import CellRun, runs_of
from .moved import Finding, find

# Measures a plan as one run.
Measure = Callable[[Plan], RunSummary]
Histories = Mapping[Cell, list[CellRun]]


@dataclass(frozen=True)
class Watched:
    """One start: why cells were due, what was run, and what every cell's history says then.

    ``newest``: when each cell's newest run started, by the cell's digest: what is found is new
    until :func:`.reported.store` has stored these. ``not_idle``: why the last run did not start or
    was cut short.
    """

    schedule: Schedule
    machine: Machine
    reasons: Mapping[Cell, Reason]
    findings: Mapping[Cell, Finding]
    newest: Mapping[str, str]
    runs: tuple[RunSummary, ...] = ()
    not_idle: str | None = None


@dataclass(frozen=True)
class Watch:
    """A chosen set on this machine.

    ``plan``: every watched cell. ``answers``: of each framework and interpreter now. ``memory``:
    the file of :mod:`.reported`.
    """

    plan: Plan
    answers: Answers
    machine: Machine
    outbox: Outbox
    memory: Path
    schedule: Schedule
    now: Callable[[], datetime]

    def start(self, measure: Measure, most_runs: int = 1) -> Watched:
        """Measure what is due, up to ``most_runs`` times, and judge every history.

        Only due cells are measured, with the timing that they have in the whole plan.
        """
        histories = self._histories()
        known = self._reported(histories)
        first = reasons = self._due(histories)
        runs: list[RunSummary] = []
        not_idle = None
        try:
            while reasons and len(runs) < most_runs:
                runs.append(measure(self._plan_of(reasons)))
                histories = self._histories()
                reasons = self._due(histories)
                if runs[-1].interrupted:
                    break
        except NotIdle as error:
            not_idle, histories = error.why, self._histories()
        findings = find(histories, self.schedule.needed, known)
        newest = {cell.digest: past[-1].started for cell, past in histories.items() if past}
        return Watched(self.schedule, self.machine, first, findings, newest, tuple(runs), not_idle)

    def _histories(self) -> Histories:
        return {
            planned.cell: runs_of(self.outbox, planned.cell, self.machine.machine_hash)
            for planned in self.plan.cells
        }

    def _reported(self, histories: Histories) -> dict[Cell, str]:
        """When each cell's newest reported run started. Before the first watch of a cell all its
        runs count as reported."""
        stored = reported.load(self.memory)
        return {
            cell: stored.get(cell.digest) or (runs[-1].started if runs else "")
            for cell, runs in histories.items()
        }

    def _due(self, histories: Histories) -> dict[Cell, Reason]:
        found = {}
        for planned in self.plan.cells:
            software = self.answers[planned.python, planned.cell.framework].environment
            if software is None:  # a framework with devices has always answered
                continue
            present = present_facts(self.machine, software)
            reason = due(histories[planned.cell], present, self.schedule, self.now())
            if reason:
                found[planned.cell] = reason
        return found

    def _plan_of(self, reasons: Mapping[Cell, Reason]) -> Plan:
        cells = tuple(planned for planned in self.plan.cells if planned.cell in reasons)
        return replace(self.plan, cells=cells, accuracy_passes=())
