"""The history of one machine in one cell: its runs, changes of their level, and their causes."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from bench_protocol.payload.differences import Difference, differences, facts_of
from bench_protocol.statistics.change_points import steps
from bench_protocol.statistics.comparison import Estimate

from ..db.tables import Submission
from ..errors import InvalidQuery, NotFound
from ..ingest.columns import stored_result
from ..ranking.figures import Figure
from ..ranking.medians import counting
from . import stored_figures
from .filters import HistoryFilters
from .runs import Repeat, Run, changes_of_level, counting_runs, middle_of, runs_of
from .types.shared_fields import InSetup, InUnits, unit_fields

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class HistoryRepeat(InUnits):
    """One result of a run."""

    result_id: str
    started_at: datetime
    samples_per_second: float
    disturbed: bool


@dataclass(frozen=True)
class HistoryPoint(InUnits):
    """One run: the median of its repeats that count, the same as its figure. ``result_id`` is the
    repeat in the middle; a ``disturbed`` run is in no level while undisturbed ones exist."""

    run_id: str
    result_id: str
    started_at: datetime
    samples_per_second: float
    framework_version: str | None
    disturbed: bool
    repeats: tuple[HistoryRepeat, ...]


@dataclass(frozen=True)
class Change:
    """A change of level. ``changed`` compares with the last run before it that counts."""

    run_id: str
    result_id: str
    started_at: datetime
    speed_up: float
    speed_up_low: float
    speed_up_high: float
    changed: tuple[Difference, ...]


@dataclass(frozen=True)
class HistoryAnswer(InSetup):
    """The newest runs of a machine in one cell, oldest first, and the changes of their level."""

    machine_id: str
    hardware: str
    workload: str
    left_out: int
    points: tuple[HistoryPoint, ...]
    changes: tuple[Change, ...]


def history(session: Session, machine_id: str, filters: HistoryFilters) -> HistoryAnswer:
    """Raises NotFound without ranked results, InvalidQuery if no cell or several are left."""
    figure = _cell(session, machine_id, filters)
    runs = runs_of(session, machine_id, figure.evidence.result_id)
    counted = sum(len(counting(run)) for run in counting_runs(runs))
    subject = figure.subject
    return HistoryAnswer(
        machine_id=machine_id,
        hardware=subject.hardware,
        workload=subject.workload,
        **subject.setup._asdict(),
        left_out=sum(map(len, runs)) - counted,
        points=tuple(_point(subject.workload, run) for run in runs),
        changes=changes_among(session, runs),
    )


def changes(session: Session, machine_id: str, result_id: str) -> tuple[Change, ...]:
    """Changes of a machine's level in the cell of a result, oldest first."""
    return changes_among(session, runs_of(session, machine_id, result_id))


def changes_among(session: Session, runs: Sequence[Run]) -> tuple[Change, ...]:
    counted = counting_runs(runs)
    places = changes_of_level(counted)
    times = [middle_of(run).ns_per_sample for run in counted]
    found = zip(places, steps(times, places), strict=True)
    return tuple(_change(session, counted, place, step) for place, step in found)


def _cell(session: Session, machine_id: str, filters: HistoryFilters) -> Figure:
    figures = stored_figures.machine_figures(session, machine_id)
    if not figures:
        raise NotFound(f"no machine {machine_id[:40]!r} with ranked results", field="id")
    wanted = filters.model_dump(exclude_none=True)
    fitting = [
        figure
        for figure in figures
        if {"workload": figure.subject.workload, **figure.setup._asdict()}.items() >= wanted.items()
    ]
    if len(fitting) == 1:
        return fitting[0]
    raise InvalidQuery(
        f"{len(fitting)} of this machine's {len(figures)} cells fit; a history is of one",
        field="workload",
        hint="GET /api/v1/machines/ID lists its cells; name workload, framework, device, recipe, "
        "batch_size, precision, data and timing until one is left",
    )


def _point(workload: str, run: Run) -> HistoryPoint:
    middle = middle_of(run)
    return HistoryPoint(
        **unit_fields(workload, 1e9 / middle.ns_per_sample),
        run_id=middle.run_id,
        result_id=middle.result_id,
        started_at=run[0].started_at,
        samples_per_second=1e9 / middle.ns_per_sample,
        framework_version=middle.framework_version,
        disturbed=middle.disturbed,
        repeats=tuple(
            HistoryRepeat(
                **unit_fields(workload, 1e9 / repeat.ns_per_sample),
                result_id=repeat.result_id,
                started_at=repeat.started_at,
                samples_per_second=1e9 / repeat.ns_per_sample,
                disturbed=repeat.disturbed,
            )
            for repeat in run
        ),
    )


def _change(session: Session, runs: Sequence[Run], place: int, step: Estimate) -> Change:
    low, high = step.bounds()
    before, first = runs[place - 1][-1], runs[place][0]
    return Change(
        run_id=first.run_id,
        result_id=first.result_id,
        started_at=first.started_at,
        speed_up=math.exp(step.centre),
        speed_up_low=low,
        speed_up_high=high,
        changed=differences(_facts(session, before), _facts(session, first)),
    )


def _facts(session: Session, repeat: Repeat) -> dict[str, str]:
    return facts_of(stored_result(session.get_one(Submission, repeat.result_id).payload))
