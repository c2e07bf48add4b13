"""The history of one machine in one cell: its results over time, the points where their speed
changed, and the changes of machine and software there."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from sqlmodel import Session, col, select

from bench_protocol.result import Result

from ..db.tables import Measurement, Submission
from ..errors import InvalidQuery, NotFound
from ..ingest.columns import stored_result
from ..ranking.figures import Figure
from . import queries
from .filters import HistoryFilters

MOST_POINTS = 500
# Fewer results on a side of a change do not define a level.
LEAST_POINTS = 3
# Levels that differ by less than half a percent count as one.
LEAST_DEVIATION = 0.005
# MAD of normally distributed values times this is their standard deviation.
MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True)
class HistoryPoint:
    """One result."""

    result_id: str
    started_at: datetime
    samples_per_second: float
    framework_version: str | None


@dataclass(frozen=True)
class Change:
    """From this result on the machine was ``speed_up`` times as fast, median against median.

    ``changed`` lists what differs from the result before: name, value before, value from here on.
    """

    result_id: str
    started_at: datetime
    speed_up: float
    changed: tuple[tuple[str, str | None, str | None], ...]


@dataclass(frozen=True)
class HistoryAnswer:
    """The newest results of a machine in one cell, oldest first, and the changes of their level."""

    machine_id: str
    hardware: str
    workload: str
    framework: str
    device: str
    recipe: str
    batch_size: int
    precision: str
    data: str
    points: tuple[HistoryPoint, ...]
    changes: tuple[Change, ...]


def history(session: Session, machine_id: str, filters: HistoryFilters) -> HistoryAnswer:
    """Raises:
    NotFound: the machine has no results that count.
    InvalidQuery: the filters leave none of its cells, or several.
    """
    figure = _cell(session, machine_id, filters)
    rows = _rows(session, machine_id, figure.evidence.result_id)
    places = change_points([row.ns_per_sample or 1.0 for row in rows])
    edges = [0, *places, len(rows)]
    changes = []
    for start, place, end in zip(edges, places, edges[2:], strict=False):
        before, after = (
            median(row.ns_per_sample or 1.0 for row in rows[a:b])
            for a, b in ((start, place), (place, end))
        )
        before_change, after_change = (_signed(session, row) for row in rows[place - 1 : place + 1])
        row = rows[place]
        changes.append(
            Change(
                row.submission_id,
                row.started_at,
                before / after,
                differences(before_change, after_change),
            )
        )
    subject = figure.subject
    return HistoryAnswer(
        machine_id=machine_id,
        hardware=subject.hardware,
        workload=subject.workload,
        **subject.setup._asdict(),
        points=tuple(
            HistoryPoint(
                row.submission_id,
                row.started_at,
                row.samples_per_second or 0.0,
                row.framework_version,
            )
            for row in rows
        ),
        changes=tuple(changes),
    )


def change_points(times: Sequence[float]) -> list[int]:
    """Places at which the level of positive times changes; each is the first of its level.

    PELT with a Gaussian cost on the logarithms (Killick, Fearnhead and Eckley, 2012), penalised as
    by BIC; the noise is estimated from the differences of neighbours, of which a change affects
    one.
    """
    if len(times) < 2 * LEAST_POINTS:
        return []
    import numpy as np  # imported here: only histories need them
    import ruptures

    logs = np.log(np.asarray(times))
    steps = np.diff(logs)
    deviation = MAD_TO_SIGMA * float(np.median(np.abs(steps - np.median(steps)))) / math.sqrt(2)
    penalty = 3 * math.log(len(times)) * max(deviation, LEAST_DEVIATION) ** 2
    search = ruptures.Pelt(model="l2", min_size=LEAST_POINTS, jump=1).fit(logs)
    return [int(place) for place in search.predict(pen=penalty)[:-1]]


def differences(before: Result, after: Result) -> tuple[tuple[str, str | None, str | None], ...]:
    """The differences of machine and software between two results, by name."""
    old_facts, new_facts = _facts(before), _facts(after)
    return tuple(
        (name, old_facts.get(name), new_facts.get(name))
        for name in sorted(old_facts.keys() | new_facts.keys())
        if old_facts.get(name) != new_facts.get(name)
    )


def _cell(session: Session, machine_id: str, filters: HistoryFilters) -> Figure:
    figures = queries.machine_figures(session, machine_id)
    if not figures:
        raise NotFound(f"no machine {machine_id[:40]!r} with results that count", field="id")
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
        "batch_size, precision and data until one is left",
    )


def _rows(session: Session, machine_id: str, result_id: str) -> list[Measurement]:
    """The newest ranked results in the cell of this one, oldest first."""
    cell = session.get_one(Measurement, result_id).cell_digest
    rows = session.scalars(
        select(Measurement)
        .where(Measurement.machine_id == machine_id, Measurement.cell_digest == cell)
        .where(col(Measurement.rankable))
        .order_by(col(Measurement.started_at).desc(), col(Measurement.submission_id))
        .limit(MOST_POINTS)
    ).all()
    return list(rows)[::-1]


def _signed(session: Session, row: Measurement) -> Result:
    return stored_result(session.get_one(Submission, row.submission_id).payload)


def _facts(result: Result) -> dict[str, str]:
    named = {
        "agent": {"version": result.agent.version},
        "machine": result.machine.model_dump(mode="json"),
        "environment": result.environment.model_dump(mode="json"),
    }
    return dict(_flat("", named))


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(f"{prefix}.{name}" if prefix else name, inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, inner in enumerate(value):
            yield from _flat(f"{prefix}.{number}", inner)
    elif value is not None:
        yield prefix, str(value)
