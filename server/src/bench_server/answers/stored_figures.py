"""Stored figures of a hardware or a machine, and lists of both with their totals. These queries
read aggregates, never results; a test checks this in the query plans of both databases."""

from collections.abc import Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, func, or_, select
from sqlmodel import Session

from bench_protocol.catalogue.workloads import Workload

from ..ranking import medians
from ..ranking.figures import Figure, Setup
from ..ranking.held import with_holds
from ..ranking.owners import facts_of
from ..ranking.rows import FIGURE_COLUMNS, TABLE, figure
from . import cursors
from .criteria import Criteria, Search
from .filters import ListFilters

Row = TypeVar("Row", bound=Any)
# Built once: it names forty columns.
FIGURES = select(*FIGURE_COLUMNS).order_by(TABLE.c.ns_per_sample, TABLE.c.id)


def figures_where(session: Session, *conditions: ColumnElement[bool]) -> list[Figure]:
    """Stored figures, fastest first, those that are held marked."""
    connection = session.connection()
    rows = connection.execute(FIGURES.where(*conditions)).all()
    return with_holds(connection, [figure(row) for row in rows])


def hardware_figures(session: Session, slug: str) -> list[Figure]:
    """Every figure of a hardware, or of a published one, fastest first."""
    levels = TABLE.c.level.in_(["hardware", "published"])
    return figures_where(session, levels, TABLE.c.hardware_slug == slug)


def machine_figures(session: Session, machine_id: str) -> list[Figure]:
    return figures_where(session, TABLE.c.level == "machine", TABLE.c.machine_id == machine_id)


def free(session: Session, rows: Sequence[Row]) -> list[Row]:
    """Rows of one set-up each whose hardware's figure in it is not held."""
    held = _held_places(session, rows)
    return [row for row in rows if _place(row) not in held]


def _held_places(session: Session, rows: Sequence[Any]) -> set[tuple[str, str, Setup]]:
    slugs = {row.hardware_slug for row in rows}
    of_hardware = figures_where(
        session, TABLE.c.level == "hardware", TABLE.c.hardware_slug.in_(slugs)
    )
    return {_place(figure) for figure in of_hardware if figure.held}


def _place(row: Any) -> tuple[str, str, Setup]:
    if isinstance(row, Figure):
        return row.hardware_slug, row.subject.workload, row.setup
    return row.hardware_slug, row.workload, Setup.of(row)


def in_setup_of(figure: Figure) -> list[ColumnElement[bool]]:
    subject = figure.subject
    names = {"hardware_slug": subject.hardware_slug, "workload_digest": subject.workload_digest}
    equal = names | subject.setup._asdict()
    return [TABLE.c[name] == value for name, value in equal.items()]


def listed(
    session: Session, level: str, filters: ListFilters, *conditions: ColumnElement[bool]
) -> tuple[list[Any], str | None]:
    """A page by id with totals of figures, and the next cursor. Hardware is found by its machines
    and owners too."""
    key = TABLE.c.machine_id if level == "machine" else TABLE.c.hardware_slug
    search = Search(filters.q)
    found = search.conditions(TABLE)
    if filters.q and level == "hardware":
        found = [or_(*found, TABLE.c.hardware_slug.in_(search.hardware_of_machines()))]
    query = (
        select(
            key.label("id"),
            func.min(TABLE.c.hardware).label("hardware"),
            func.min(TABLE.c.owner).label("owner"),
            func.count().label("cells"),
            func.sum(TABLE.c.repeats).label("repeats"),
            func.max(TABLE.c.machines).label("machines"),
            func.max(TABLE.c.owners).label("owners"),
            func.max(TABLE.c.newest_at).label("newest_at"),
        )
        .where(TABLE.c.level == level, *found, *conditions)
        .group_by(key)
        .order_by(key)
        .limit(filters.limit + 1)
    )
    if filters.cursor is not None:
        query = query.where(key > cursors.read(filters.cursor, str)[0])
    rows = list(session.connection().execute(query))
    page = rows[: filters.limit]
    return page, cursors.write(page[-1].id) if len(rows) > len(page) else None


def board_figures(
    session: Session, workloads: Sequence[Workload], criteria: Criteria, of_machines: bool = False
) -> dict[str, list[Figure]]:
    """By the workloads' digests, all read at once. A machine or an owner selects machines, and
    hardware is ranked from those. A trust level selects among the figures."""
    some_machines = bool({"machine_id", "owner"} & criteria.equal.keys())
    conditions = criteria.on_boards(workloads)
    if of_machines or some_machines:
        found = figures_where(session, TABLE.c.level == "machine", *conditions)
        if of_machines:  # a machine's figure is held with that of its hardware
            held = _held_places(session, found)
            found = [one._replace(held=_place(one) in held) for one in found]
    else:
        level = TABLE.c.level.in_(["hardware", "published"])
        found = figures_where(session, level, *conditions)
    if some_machines and not of_machines:
        owners = (figure.subject.owner for figure in found)
        of_hardware = medians.of_machines(found, facts_of(session.connection(), owners))
        found = with_holds(session.connection(), of_hardware)
    by_workload: dict[str, list[Figure]] = {workload.digest: [] for workload in workloads}
    for one in found:
        if one.trust_level >= (criteria.trust_level or 0):
            by_workload[one.subject.workload_digest].append(one)
    return by_workload
