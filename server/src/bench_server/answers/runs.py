"""The runs of one machine in one cell, and which of them count in a level."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlmodel import Session

from bench_protocol.statistics.change_points import change_points

from ..db.tables import Measurement
from ..ranking.medians import counting
from ..ranking.rows import RESULTS

MOST_RUNS = 500
MOST_RESULTS = 3 * MOST_RUNS


class Repeat(NamedTuple):
    """Columns of a ranked result."""

    result_id: str
    run_id: str
    started_at: datetime
    ns_per_sample: float
    framework_version: str | None
    disturbed: bool


# The repeats of one run, the first before the others.
Run = list[Repeat]


def runs_of(session: Session, machine_id: str, result_id: str) -> list[Run]:
    """A machine's newest runs in the cell and timing of a result, oldest first: at most 500 whole
    runs, of at most 1,500 results."""
    shown = session.get_one(Measurement, result_id)
    c = RESULTS.c
    query = (
        select(
            *(c.submission_id, c.run_id, c.started_at, c.ns_per_sample, c.framework_version),
            c.disturbed,
        )
        .where(c.machine_id == machine_id, c.cell_digest == shown.cell_digest, c.rankable)
        .where(c.timing == shown.timing)
        .order_by(c.started_at.desc(), c.submission_id)
        .limit(MOST_RESULTS + 1)
    )
    newest_first = session.connection().execute(query).all()
    runs: dict[str, Run] = {}
    for row in reversed(newest_first):
        runs.setdefault(row.run_id, []).append(Repeat._make(row))
    whole = list(runs.values())
    if len(newest_first) > MOST_RESULTS and len(whole) > 1:
        del whole[0]  # its first repeats may be beyond the limit
    return whole[-MOST_RUNS:]


def middle_of(run: Run) -> Repeat:
    """The repeat whose time the run's figure is (:func:`..ranking.medians.combine`)."""
    ordered = sorted(counting(run), key=lambda repeat: (repeat.ns_per_sample, repeat.result_id))
    return ordered[len(ordered) // 2]


def counting_runs(runs: Sequence[Run]) -> list[Run]:
    """Runs with an undisturbed repeat, or all without any."""
    return [run for run in runs if not middle_of(run).disturbed] or list(runs)


class Sides(NamedTuple):
    """The first run of the level before an update, of the one after it, and of what follows."""

    start: int
    edge: int
    end: int
    marked: bool


def sides(places: Sequence[int], switch: int, count: int) -> Sides:
    """``places``: where the level changes, within one run; ``switch``: the update's first run."""
    marked = next((place for place in places if abs(place - switch) <= 1), None)
    edge = switch if marked is None else marked
    start = max((place for place in places if place < edge), default=0)
    end = min((place for place in places if place > edge), default=count)
    return Sides(start, edge, end, marked is not None)


def changes_of_level(runs: Sequence[Run]) -> list[int]:
    """The first run of each new level, among runs that count."""
    return change_points([middle_of(run).ns_per_sample for run in runs])
