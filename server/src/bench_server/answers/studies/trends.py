"""Study: figures by version of driver, system and framework, and what each version changed.

What a version changed is measured within machines: those that have the version before too. Machines
that have one of the two alone may be faster or slower for other reasons.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from pydantic import Field
from sqlalchemy import and_, or_, select
from sqlmodel import Session

from bench_protocol.catalogue import CATALOGUE
from bench_protocol.workloads import Workload

from ...db.environments import version_key
from ...db.tables import EnvironmentRow
from ...errors import NotFound
from ...ranking.compare import Comparison, compare_on_machines, corrected
from ...ranking.figures import Figure, Setup
from ...ranking.medians import of_machines, of_runs
from ...ranking.owners import kinds_of
from ...ranking.rows import FIGURE_COLUMNS, TABLE, figure
from ..filters import AFramework, AWorkload
from ..history import runs_and_changes
from ..known import require_known
from ..types import rate_fields
from .common import HardwareChoice

ENVIRONMENTS = EnvironmentRow.__table__  # type: ignore[attr-defined]
# Of so few machines the answer names each, with the change in its history.
FEW_MACHINES = 2
MOST_LINES = 40
By = Literal["framework_version", "driver", "os_version", "cuda", "python", "agent"]


class TrendChoice(HardwareChoice):
    """Parameters of trends; empty: the hardware with most figures."""

    workload: AWorkload = None
    framework: AFramework = None
    by: By = Field(
        "framework_version", description="what the figures are laid out by", examples=["driver"]
    )


@dataclass(frozen=True)
class MachineUpdate:
    """What a version changed on one machine: ``speed_up`` is the ratio of its figures, ``change``
    the speed-up of the change that its history has there, null if it has none."""

    machine_id: str
    speed_up: float
    change: float | None


@dataclass(frozen=True)
class Update:
    """What a version changed against the version before.

    ``held``: over the machines that have both, null if there are none; ``only_one``: machines that
    have one of the two versions only, and are not in it. ``machines``: named where one or two have
    both.
    """

    held: Comparison | None
    only_one: int
    machines: tuple[MachineUpdate, ...]


@dataclass(frozen=True)
class VersionFigure:
    """The figure of one version, over all machines that have it; ``update`` is null for the first.
    Figures of two versions are of different machines: what a version changed is its ``update``."""

    version: str
    samples_per_second: float
    samples_per_second_low: float | None
    samples_per_second_high: float | None
    repeats: int
    machines: int
    owners: int
    update: Update | None


@dataclass(frozen=True)
class MachineLine:
    """The figures of one machine by version; null where it has none."""

    machine_id: str
    samples_per_second: tuple[float | None, ...]


@dataclass(frozen=True)
class TrendsAnswer:
    """Figures of one hardware in one set-up by version, oldest version first; null if nothing is
    ranked. ``machines``: at most 40 that have two or more versions, those with most first.
    ``comparisons``: for how many the verdicts are corrected."""

    hardware: str | None
    hardware_slug: str | None
    workload: str | None
    setup: dict[str, Any] | None
    by: By
    comparisons: int
    versions: tuple[VersionFigure, ...]
    machines: tuple[MachineLine, ...]


class Version(NamedTuple):
    """The runs of one version, by machine, and the figures of these machines."""

    name: str
    runs: dict[str, list[Figure]]
    machines: dict[str, Figure]

    @classmethod
    def of(cls, name: str, runs: Iterable[Figure]) -> "Version":
        by_machine: defaultdict[str, list[Figure]] = defaultdict(list)
        for run in runs:
            by_machine[run.subject.machine_id].append(run)
        machines = {id: of_runs(of_one)[0] for id, of_one in by_machine.items()}
        return cls(name, dict(by_machine), machines)


def trends(session: Session, choice: TrendChoice) -> TrendsAnswer:
    """The study of one hardware in one set-up.

    Raises:
        InvalidQuery: the hardware or the framework is unknown.
        NotFound: it has no figures of the workload.
    """
    require_known(session, choice)
    digests = {workload.digest: workload for workload in CATALOGUE}
    names = {workload.name: workload for workload in CATALOGUE}
    slug, workload = choice.hardware, names.get(choice.workload or "")
    if slug is None or workload is None:
        most_measured = _measured_most(session, slug, [workload] if workload else CATALOGUE)
        if most_measured is None:
            return TrendsAnswer(None, None, None, None, choice.by, 0, (), ())
        slug, digest = most_measured
        workload = digests[digest]
    groups = _by_version(session, slug, workload, choice)
    if not groups:
        raise NotFound(f"no figures of {slug[:100]!r} in {workload.name}", field="hardware")
    setup, versions = max(
        groups.items(), key=lambda item: (len(item[1]), item[0].timing == "long", item[0])
    )
    ordered = [
        Version.of(name, versions[name])
        for name in sorted(versions, key=lambda name: (version_key(name) or "", name))
    ]
    owners = (one.subject.owner for version in ordered for one in version.machines.values())
    kinds = kinds_of(session.connection(), owners)
    figures = [of_machines(version.machines.values(), kinds)[0] for version in ordered]
    updates, count = _updates(session, ordered)
    return TrendsAnswer(
        hardware=figures[0].hardware,
        hardware_slug=slug,
        workload=workload.name,
        setup=setup._asdict(),
        by=choice.by,
        comparisons=count,
        versions=tuple(
            VersionFigure(
                version=version.name,
                **rate_fields(combined),
                repeats=combined.repeats,
                machines=combined.machines,
                owners=combined.owners.total,
                update=update,
            )
            for version, combined, update in zip(ordered, figures, updates, strict=True)
        ),
        machines=_lines(ordered),
    )


def _updates(session: Session, ordered: Sequence[Version]) -> tuple[list[Update | None], int]:
    """What each version changed, None for the first, and the number of verdicts."""
    both = [
        (old, new, sorted(old.machines.keys() & new.machines.keys()))
        for old, new in pairwise(ordered)
    ]
    found, count = corrected(
        [
            compare_on_machines([(new.machines[id], old.machines[id]) for id in ids])
            for old, new, ids in both
            if ids
        ]
    )
    comparisons = iter(found)
    updates: list[Update | None] = [None]
    for old, new, ids in both:
        few = ids if len(ids) <= FEW_MACHINES else []
        updates.append(
            Update(
                next(comparisons) if ids else None,
                len(old.machines.keys() ^ new.machines.keys()),
                tuple(_machine_update(session, old, new, id) for id in few),
            )
        )
    return updates, count


def _machine_update(session: Session, old: Version, new: Version, id: str) -> MachineUpdate:
    before, after = old.machines[id], new.machines[id]
    return MachineUpdate(
        id, before.ns_per_sample / after.ns_per_sample, _change(session, old, new, id)
    )


def _change(session: Session, old: Version, new: Version, id: str) -> float | None:
    """The speed-up of the change in a machine's history where the new version follows the old one,
    to within one run, which is how well changes are placed."""
    runs, changes = runs_and_changes(session, id, new.machines[id].evidence.result_id)
    ids = [run[0].run_id for run in runs]
    before, after = ({run.subject.run_id for run in v.runs[id]} for v in (old, new))
    switches = [
        n for n, pair in enumerate(pairwise(ids), 1) if pair[0] in before and pair[1] in after
    ]
    for change in changes:
        if any(abs(ids.index(change.run_id) - place) <= 1 for place in switches):
            return change.speed_up
    return None


def _lines(ordered: Sequence[Version]) -> tuple[MachineLine, ...]:
    """The machines that have two or more versions."""
    versions = Counter(id for version in ordered for id in version.machines)
    several = [(-count, id) for id, count in versions.items() if count > 1]
    return tuple(
        MachineLine(
            id,
            tuple(
                1e9 / version.machines[id].ns_per_sample if id in version.machines else None
                for version in ordered
            ),
        )
        for _, id in sorted(several)[:MOST_LINES]
    )


def _measured_most(
    session: Session, slug: str | None, workloads: Sequence[Workload]
) -> tuple[str, str] | None:
    """Hardware and workload of the set-up with most results at the default batch size."""
    usual = or_(
        *(
            and_(TABLE.c.workload_digest == w.digest, TABLE.c.batch_size == w.batch_size)
            for w in workloads
        )
    )
    query = (
        select(TABLE.c.hardware_slug, TABLE.c.workload_digest)
        .where(TABLE.c.level == "hardware", TABLE.c.precision == "float32", usual)
        .order_by(TABLE.c.repeats.desc(), TABLE.c.id)
        .limit(1)
    )
    if slug is not None:
        query = query.where(TABLE.c.hardware_slug == slug)
    row = session.connection().execute(query).first()
    return (row[0], row[1]) if row else None


def _by_version(
    session: Session, slug: str, workload: Workload, choice: TrendChoice
) -> dict[Setup, dict[str, list[Figure]]]:
    """Figures of runs, by set-up and version."""
    version = ENVIRONMENTS.c[choice.by]
    query = (
        select(version, *FIGURE_COLUMNS)
        .join(ENVIRONMENTS, ENVIRONMENTS.c.id == TABLE.c.environment_id)
        .where(TABLE.c.level == "run", TABLE.c.hardware_slug == slug)
        .where(TABLE.c.workload_digest == workload.digest, TABLE.c.precision == "float32")
        .where(TABLE.c.batch_size == workload.batch_size, version.is_not(None))
    )
    if choice.framework:
        query = query.where(TABLE.c.framework == choice.framework)
    groups: dict[Setup, dict[str, list[Figure]]] = defaultdict(lambda: defaultdict(list))
    for of_version, *row in session.connection().execute(query):
        row_figure = figure(row)
        groups[row_figure.setup][of_version].append(row_figure)
    return groups
