"""Study: figures by version of driver, system and framework, and what each version changed.

What a version changed is measured within machines (:mod:`.updates`): those that have the version
before too. Machines that have one of the two alone may be faster or slower for other reasons.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import Field
from sqlalchemy import Select, func, select, tuple_
from sqlmodel import Session

from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.workloads import Workload

from ...db.tables import EnvironmentRow
from ...errors import NotFound
from ...ranking.figures import Figure, Setup
from ...ranking.medians import of_machines
from ...ranking.owners import facts_of
from ...ranking.rows import FIGURE_COLUMNS, TABLE, figure
from ..parameters import AFramework, AWorkload
from ..query_names import require_known
from ..types.shared_fields import Rated, rate_fields
from .common import HardwareChoice, StudyAnswer
from .updates import Update, Version, updates

ENVIRONMENTS = EnvironmentRow.__table__  # type: ignore[attr-defined]
# Hardware and workloads that are searched for a set-up with two or more versions.
MOST_CANDIDATES = 8
STAGES = {"dev": 0, "alpha": 1, "a": 1, "beta": 2, "b": 2, "pre": 3, "rc": 3}
STAGE = re.compile(r"[-._]?(dev|alpha|beta|pre|rc|a|b)[-._]?(\d{0,9})", re.ASCII)
RELEASED = 4
By = Literal["framework_version", "driver", "os_version", "cuda", "python", "agent"]


class TrendChoice(HardwareChoice):
    """Parameters of trends; empty: the most results, if possible of two or more versions."""

    workload: AWorkload = None
    framework: AFramework = None
    by: By = Field("framework_version", examples=["driver"])
    """what the figures are laid out by"""


@dataclass(frozen=True)
class VersionFigure(Rated):
    """The figure of one version, over all machines that have it; ``update`` is null for the first.
    ``left_out`` counts disturbed repeats that are not in it, ``disturbed``: those in it are.
    Figures of two versions are of different machines: what a version changed is its ``update``."""

    version: str
    repeats: int
    machines: int
    owners: int
    owners_that_count: int
    disturbed: bool
    left_out: int
    update: Update | None


@dataclass(frozen=True)
class TrendsAnswer(StudyAnswer):
    """Figures of one hardware in one set-up by version, oldest version first."""

    workload: str | None
    setup: dict[str, Any] | None
    by: By
    versions: tuple[VersionFigure, ...]


def trends(session: Session, choice: TrendChoice) -> TrendsAnswer:
    """Raises InvalidQuery for unknown hardware or framework, NotFound if no figure fits."""
    require_known(session, choice)
    shown = None
    for candidate in _measured_most(session, choice):
        groups = _by_version(session, *candidate, choice)
        several = any(len(versions) > 1 for versions in groups.values())
        if several or (groups and not shown):
            shown = candidate, groups
        if several:
            break
    if shown is None and choice == TrendChoice.model_validate({}):
        return TrendsAnswer(None, None, 0, None, None, choice.by, ())
    if shown is None:
        named = ", ".join(f"{name} {value[:100]!r}" for name, value in choice if value)
        others = " or ".join(name for name in get_args(By)[:3] if name != choice.by)
        hint = f"no ranked run there says which; choose {others}, or another hardware"
        raise NotFound(f"no figures of versions with {named}", field="by", hint=hint)
    (slug, workload), groups = shown
    setup, versions = max(
        groups.items(),
        key=lambda one: (_with_several(one[1]), len(one[1]), one[0].timing == "long", one[0]),
    )
    ordered = [
        Version.of(name, versions[name])
        for name in sorted(versions, key=lambda name: (version_key(name), name))
    ]
    owners = (one.subject.owner for version in ordered for one in version.machines.values())
    facts = facts_of(session.connection(), owners)
    figures = [of_machines(version.machines.values(), facts)[0] for version in ordered]
    changed, count = updates(session, ordered)
    one_machine = len({id for version in ordered for id in version.machines}) == 1
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
                **rate_fields(combined, own=one_machine),
                repeats=combined.repeats,
                machines=combined.machines,
                owners=combined.owners.total,
                owners_that_count=combined.counted,
                disturbed=combined.disturbed,
                left_out=combined.left_out,
                update=update,
            )
            for version, combined, update in zip(ordered, figures, changed, strict=True)
        ),
    )


def version_key(text: str) -> tuple[tuple[int, ...], int, int]:
    """``2.9 < 2.10rc1 < 2.10``. Words around it (``Ubuntu 22.04.3 LTS``) and what a vendor adds
    behind ``+`` do not count."""
    found = re.search(r"\d+(?:\.\d+)*", text, re.ASCII)
    if found is None:
        return (), 0, 0
    stage = STAGE.match(text[found.end() :].lower())
    kind, number = (STAGES[stage[1]], int(stage[2] or 0)) if stage else (RELEASED, 0)
    return tuple(map(int, found[0].split("."))), kind, number


def _with_several(versions: Mapping[str, Sequence[Figure]]) -> int:
    of_machines = Counter(
        id for runs in versions.values() for id in {run.subject.machine_id for run in runs}
    )
    return sum(count > 1 for count in of_machines.values())


def _measured_most(session: Session, choice: TrendChoice) -> list[tuple[str, Workload]]:
    """Hardware and workload of the set-ups with most results that have runs to show."""
    by_digest = {one.digest: one for one in CATALOGUE if choice.workload in (None, one.name)}
    usual = [(digest, workload.batch_size) for digest, workload in by_digest.items()]
    above = TABLE.alias()
    same = ("hardware_slug", "workload_digest", *Setup._fields)
    runs = _runs(choice, TABLE.c.id).where(*(TABLE.c[name] == above.c[name] for name in same))
    query = (
        select(above.c.hardware_slug, above.c.workload_digest)
        .where(above.c.level == "hardware", runs.exists())
        .where(tuple_(above.c.workload_digest, above.c.batch_size).in_(usual))
        .group_by(above.c.hardware_slug, above.c.workload_digest)
        .order_by(func.max(above.c.repeats).desc(), func.min(above.c.id))
        .limit(MOST_CANDIDATES)
    )
    if choice.hardware:
        query = query.where(above.c.hardware_slug == choice.hardware)
    return [(row[0], by_digest[row[1]]) for row in session.connection().execute(query)]


def _by_version(
    session: Session, slug: str, workload: Workload, choice: TrendChoice
) -> dict[Setup, dict[str, list[Figure]]]:
    query = _runs(choice, ENVIRONMENTS.c[choice.by], *FIGURE_COLUMNS)
    query = query.where(TABLE.c.hardware_slug == slug, TABLE.c.workload_digest == workload.digest)
    query = query.where(TABLE.c.batch_size == workload.batch_size)
    groups: dict[Setup, dict[str, list[Figure]]] = defaultdict(lambda: defaultdict(list))
    for of_version, *row in session.connection().execute(query):
        row_figure = figure(row)
        groups[row_figure.setup][of_version].append(row_figure)
    return groups


def _runs(choice: TrendChoice, *columns: Any) -> Select[Any]:
    query = (
        select(*columns)
        .join(ENVIRONMENTS, ENVIRONMENTS.c.id == TABLE.c.environment_id)
        .where(TABLE.c.level == "run", TABLE.c.precision == "float32")
        .where(ENVIRONMENTS.c[choice.by].is_not(None))
    )
    if choice.framework:
        query = query.where(TABLE.c.framework == choice.framework)
    return query
