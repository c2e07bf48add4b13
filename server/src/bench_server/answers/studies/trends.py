"""Study: figures by version of driver, system and framework."""

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from pydantic import Field
from sqlalchemy import and_, or_, select
from sqlmodel import Session

from bench_protocol.catalogue import CATALOGUE
from bench_protocol.workloads import Workload

from ...db.environments import version_key
from ...db.tables import EnvironmentRow
from ...errors import NotFound
from ...ranking.compare import Comparison
from ...ranking.confirmed import confirmed_owners
from ...ranking.figures import Figure, Setup, of_machines, of_runs
from ...ranking.rows import FIGURE_COLUMNS, TABLE, figure
from ..filters import AFramework, AWorkload
from ..known import require_known
from ..verdicts import verdicts
from .common import HardwareChoice

ENVIRONMENTS = EnvironmentRow.__table__  # type: ignore[attr-defined]
By = Literal["framework_version", "driver", "os_version", "cuda", "python", "agent"]


class TrendChoice(HardwareChoice):
    """Parameters of trends; empty: the hardware with most figures."""

    workload: AWorkload = None
    framework: AFramework = None
    by: By = Field(
        "framework_version", description="what the figures are laid out by", examples=["driver"]
    )


@dataclass(frozen=True)
class VersionFigure:
    """One version; ``held``: its comparison with the version before, over all machines of each."""

    version: str
    samples_per_second: float
    repeats: int
    machines: int
    owners: int
    held: Comparison | None


@dataclass(frozen=True)
class TrendsAnswer:
    """Figures of one hardware in one set-up by version, oldest version first; null if nothing is
    ranked. ``comparisons``: for how many the verdicts are corrected."""

    hardware: str | None
    hardware_slug: str | None
    workload: str | None
    setup: dict[str, Any] | None
    by: By
    comparisons: int
    versions: tuple[VersionFigure, ...]


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
            return TrendsAnswer(None, None, None, None, choice.by, 0, ())
        slug, digest = most_measured
        workload = digests[digest]
    groups = _by_version(session, slug, workload, choice)
    if not groups:
        raise NotFound(f"no figures of {slug[:100]!r} in {workload.name}", field="hardware")
    setup, versions = max(
        groups.items(), key=lambda item: (len(item[1]), item[0].timing == "long", item[0])
    )
    ordered = sorted(versions.items(), key=lambda item: (version_key(item[0]) or "", item[0]))
    confirmed = confirmed_owners(session.connection())
    figures = [(version, _combined(of_version, confirmed)) for version, of_version in ordered]
    found = verdicts(session, [(new, old) for (_, old), (_, new) in pairwise(figures)])
    return TrendsAnswer(
        hardware=figures[0][1].hardware,
        hardware_slug=slug,
        workload=workload.name,
        setup=setup._asdict(),
        by=choice.by,
        comparisons=found.count,
        versions=tuple(
            VersionFigure(
                version,
                1e9 / combined.ns_per_sample,
                combined.repeats,
                combined.machines,
                combined.owners,
                found.of[combined, figures[place - 1][1]] if place else None,
            )
            for place, (version, combined) in enumerate(figures)
        ),
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


def _combined(runs: Iterable[Figure], confirmed: Set[str]) -> Figure:
    return of_machines(of_runs(runs), confirmed)[0]
