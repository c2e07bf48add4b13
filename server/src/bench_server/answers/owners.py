"""An owner's machines: how fast each is now, and what its last update changed.

This reads aggregates alone: the runs of the cell that each machine has most runs of in a workload,
in the order in which they were received. Their levels are those of the machine's history
(:mod:`.history`) unless runs were sent in another order than measured.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median_high
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlmodel import Session

from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.payload.differences import Difference
from bench_protocol.statistics.change_points import LEAST_RUNS, change_points, steps
from bench_protocol.statistics.comparison import LogSample, figure_interval

from ..db.tables import EnvironmentRow, table_of
from ..ranking import ranges
from ..ranking.figures import Figure
from ..ranking.medians import counting
from ..ranking.owners import NO_OWNER, OWNER_KINDS, OwnerKind, facts_of
from ..ranking.rows import TABLE
from ..ranking.score import with_leads
from . import query_names, stored_figures
from .runs import sides
from .types.shared_fields import InSetup, InUnits, unit_fields

ENVIRONMENTS = table_of(EnvironmentRow)
# Limits of time: each cell's history is searched for changes.
MOST_MACHINES = 25
MOST_RUNS = 60
# What an update changes, as attributes of an environment.
VERSIONS = ("driver", "os_version", "framework_version")


@dataclass(frozen=True)
class LastUpdate:
    """The newest change of driver, system or framework version in a cell: the level just after it
    against the level just before it. ``marked``: whether the history marks a change of level there;
    null where one side has too few runs for one."""

    changed: tuple[Difference, ...]
    os: str
    updated_at: datetime
    speed_up: float
    speed_up_low: float | None
    speed_up_high: float | None
    marked: bool | None


@dataclass(frozen=True)
class OwnedCell(InUnits, InSetup):
    """A machine in a workload: its newest level in the set-up that it has most runs of."""

    workload: str
    samples_per_second: float
    samples_per_second_low: float
    samples_per_second_high: float
    runs: int
    update: LastUpdate | None


@dataclass(frozen=True)
class OwnedMachine:
    """A machine of an owner, with a cell for each workload that it has a figure of."""

    machine_id: str
    hardware: dict[str, str]
    newest_at: datetime
    cells: tuple[OwnedCell, ...]


@dataclass(frozen=True)
class OwnerAnswer:
    """An owner and its machines, those measured last first, at most 25."""

    owner: str
    owner_kind: OwnerKind
    machine_count: int
    machines: tuple[OwnedMachine, ...]


class RunFigure(NamedTuple):
    """The figure of one run, when its newest result was received, and its versions."""

    ns_per_sample: float
    disturbed: bool
    newest_at: datetime
    environment: Any


def owner(session: Session, label: str) -> OwnerAnswer:
    """Raises NotFound if the owner has no figure."""
    ids, count = _machines(session, label)
    if not ids:
        raise query_names.no_owner(session, label)
    figures = stored_figures.figures_where(
        session, TABLE.c.level == "machine", TABLE.c.machine_id.in_(ids)
    )
    chosen = {id: _most_runs([f for f in figures if f.subject.machine_id == id]) for id in ids}
    histories = _histories(session, [one for of_one in chosen.values() for one in of_one])
    facts = facts_of(session.connection(), [label]).get(label, NO_OWNER)
    machines = [
        OwnedMachine(
            id,
            {one.hardware_slug: one.hardware for one in figures if one.subject.machine_id == id},
            max(one.newest_at for one in figures if one.subject.machine_id == id),
            tuple(_cell(one, histories.get(one.id, ())) for one in of_one),
        )
        for id, of_one in chosen.items()
    ]
    return OwnerAnswer(label, OWNER_KINDS[facts.kind], count, tuple(machines))


def has_figures(session: Session, label: str) -> bool:
    """Whether an owner of exactly this name has any."""
    of_owner = select(TABLE.c.id).where(TABLE.c.level == "machine", TABLE.c.owner == label)
    return session.connection().scalar(of_owner.limit(1)) is not None


def _machines(session: Session, label: str) -> tuple[list[str], int]:
    """Ids, those measured last first, and how many there are."""
    id, newest = TABLE.c.machine_id, func.max(TABLE.c.newest_at)
    query = (
        select(id, func.count().over())
        .where(TABLE.c.level == "machine", TABLE.c.owner == label)
        .group_by(id)
        .order_by(newest.desc(), id)
        .limit(MOST_MACHINES)
    )
    rows = session.connection().execute(query).all()
    return [row[0] for row in rows], rows[0][1] if rows else 0


def _most_runs(figures: Sequence[Figure]) -> list[Figure]:
    """The figure of most runs in each workload, at its own batch size if there is one, the fastest
    of several."""
    best: dict[str, Figure] = {}
    own = {(workload.digest, workload.batch_size) for workload in CATALOGUE}

    def place(one: Figure) -> tuple[bool, int, float, str]:
        is_own = (one.subject.workload_digest, one.setup.batch_size) in own
        return not is_own, -one.runs, one.ns_per_sample, one.id

    for one in sorted(with_leads(figures), key=place):
        best.setdefault(one.subject.workload_digest, one)
    return [best[workload.digest] for workload in CATALOGUE if workload.digest in best]


def _histories(session: Session, figures: Sequence[Figure]) -> Mapping[str, list[RunFigure]]:
    """The newest runs of each figure that has several, by its id, the oldest first."""
    c = TABLE.c
    place = func.row_number().over(partition_by=c.parent_id, order_by=(c.newest_at.desc(), c.id))
    several = [one.id for one in figures if one.runs > 1]
    newest = (
        select(
            *(c.parent_id, c.ns_per_sample, c.disturbed, c.newest_at, c.environment_id),
            place.label("place"),
        )
        .where(c.parent_id.in_(several))
        .subquery()
    )
    query = select(newest).where(newest.c.place <= MOST_RUNS).order_by(newest.c.place.desc())
    rows = session.connection().execute(query).all()
    wanted = {row.environment_id for row in rows}
    environments = {
        row.id: row
        for row in session.connection().execute(
            select(ENVIRONMENTS).where(ENVIRONMENTS.c.id.in_(wanted))
        )
    }
    found: defaultdict[str, list[RunFigure]] = defaultdict(list)
    for row in rows:
        environment = environments.get(row.environment_id)
        run = RunFigure(row.ns_per_sample, row.disturbed, row.newest_at, environment)
        found[row.parent_id].append(run)
    return found


def _cell(figure: Figure, history: Sequence[RunFigure]) -> OwnedCell:
    runs = counting(history)
    times = [run.ns_per_sample for run in runs] or [figure.ns_per_sample]
    places = change_points(times)
    level = times[places[-1] if places else 0 :]
    middle = median_high(level)
    rate = 1e9 / middle
    interval = figure_interval(middle, LogSample.of(level))
    if middle == figure.ns_per_sample or interval is None:  # the machine's figure, with its range
        low, high, _ = ranges.of_figure(figure).around(rate)
    else:
        low, high = 1e9 / interval[1], 1e9 / interval[0]
    return OwnedCell(
        workload=next(w.name for w in CATALOGUE if w.digest == figure.subject.workload_digest),
        **figure.setup._asdict(),
        **unit_fields(figure.subject.workload, rate),
        samples_per_second=rate,
        samples_per_second_low=low,
        samples_per_second_high=high,
        runs=figure.runs,
        update=_last_update(runs, times, places),
    )


def _last_update(
    runs: Sequence[RunFigure], times: Sequence[float], places: Sequence[int]
) -> LastUpdate | None:
    pairs = enumerate(pairwise(runs), start=1)
    switches = {n: changed for n, (a, b) in pairs if (changed := _differences(a, b))}
    if not switches:
        return None
    *earlier, switch = switches
    start, edge, end, marked = sides(places, switch, len(times))
    if not marked:  # runs of the version before alone
        start = max([start, *earlier])
    before, after = times[start:edge], times[edge:end]
    low = high = None
    if marked:
        low, high = steps(times, places)[places.index(edge)].bounds()
    few = min(len(before), len(after)) < LEAST_RUNS
    return LastUpdate(
        changed=switches[switch],
        os=runs[switch].environment.os,
        updated_at=runs[switch].newest_at,
        speed_up=math.exp(math.log(median_high(before)) - math.log(median_high(after))),
        speed_up_low=low,
        speed_up_high=high,
        marked=None if few and not marked else marked,
    )


def _differences(before: RunFigure, after: RunFigure) -> tuple[Difference, ...]:
    pairs = [
        (name, getattr(before.environment, name, None), getattr(after.environment, name, None))
        for name in VERSIONS
    ]
    return tuple(Difference(name, a, b) for name, a, b in pairs if a and b and a != b)
