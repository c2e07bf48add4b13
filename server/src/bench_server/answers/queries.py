"""Queries: read figures and results from the database.

Queries for figures read aggregates (:mod:`.aggregates`), never results. A test checks this in the
query plans of both databases.
"""

import operator
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, or_, select
from sqlalchemy.orm import load_only
from sqlmodel import Session, col

from bench_protocol.catalogue.workloads import Workload

from ..db.environments import NUMBERS, VERSIONS, version_key
from ..db.tables import (
    EnvironmentRow,
    Measurement,
    PublishedFigure,
    Submission,
    Withdrawn,
    table_of,
)
from ..errors import Gone, InvalidQuery, NotFound
from ..ingest import columns
from ..projection import reproduced
from ..ranking import published
from ..ranking.figures import Figure, Setup
from ..ranking.rows import FIGURE_COLUMNS, RESULTS, TABLE, figure, lineage, subject_of
from . import cursors, families
from .filters import CONDITION, CellFilters, ListFilters, ResultFilters, ResultPageFilters
from .types import ReproductionAnswer

MOST_HARDWARE = 500
ENVIRONMENTS = table_of(EnvironmentRow)
# Built once: it names forty columns.
FIGURES = select(*FIGURE_COLUMNS).order_by(TABLE.c.ns_per_sample, TABLE.c.id)
COMPARISONS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def hardware_figures(session: Session, slug: str, workload: Workload | None = None) -> list[Figure]:
    """Every figure of a hardware, or of a published one, fastest first."""
    conditions = [TABLE.c.level.in_(["hardware", "published"]), TABLE.c.hardware_slug == slug]
    if workload is not None:
        conditions.append(TABLE.c.workload_digest == workload.digest)
    return figures_where(session, *conditions)


def machine_figures(session: Session, machine_id: str) -> list[Figure]:
    """Every figure of a machine, fastest first."""
    return figures_where(session, TABLE.c.level == "machine", TABLE.c.machine_id == machine_id)


def listed(session: Session, level: str, filters: ListFilters) -> tuple[list[Any], str | None]:
    """A page of hardware (``level`` ``hardware``) or machines, by id, with totals of their
    figures, and the cursor of the next page."""
    key = TABLE.c.machine_id if level == "machine" else TABLE.c.hardware_slug
    query = (
        select(
            key.label("id"),
            func.min(TABLE.c.hardware).label("hardware"),
            func.count().label("cells"),
            func.sum(TABLE.c.repeats).label("repeats"),
            func.max(TABLE.c.machines).label("machines"),
            func.max(TABLE.c.owners).label("owners"),
            func.max(TABLE.c.newest_at).label("newest_at"),
        )
        .where(TABLE.c.level == level)
        .group_by(key)
        .order_by(key)
        .limit(filters.limit + 1)
    )
    if filters.q:
        query = query.where(TABLE.c.hardware.icontains(filters.q, autoescape=True))
    if filters.cursor is not None:
        query = query.where(key > cursors.read(filters.cursor, str)[0])
    rows = list(session.connection().execute(query))
    page = rows[: filters.limit]
    return page, cursors.write(page[-1].id) if len(rows) > len(page) else None


def hardware_of_machines(session: Session, ids: Sequence[str]) -> dict[str, dict[str, str]]:
    """Slugs and names of the hardware of each machine."""
    query = (
        select(TABLE.c.machine_id, TABLE.c.hardware_slug, TABLE.c.hardware)
        .where(TABLE.c.level == "machine", TABLE.c.machine_id.in_(ids))
        .distinct()
    )
    hardware: dict[str, dict[str, str]] = {identity: {} for identity in ids}
    for identity, slug, name in session.connection().execute(query):
        hardware[identity][slug] = name
    return hardware


def published_figure(session: Session, identity: str) -> Figure | None:
    """One copied figure by its own id."""
    row = session.get(PublishedFigure, identity)
    return published.figure(row) if row is not None else None


def frameworks(session: Session) -> list[str]:
    """All frameworks with a figure."""
    query = select(TABLE.c.framework).where(TABLE.c.level == "hardware").distinct()
    return sorted(session.connection().scalars(query))


def is_hardware(session: Session, slug: str) -> bool:
    """Whether any figure, measured or published, is of this hardware."""
    levels = TABLE.c.level.in_(["hardware", "published"])
    query = select(TABLE.c.id).where(levels, TABLE.c.hardware_slug == slug).limit(1)
    return session.connection().scalar(query) is not None


def ranked_hardware(session: Session) -> list[tuple[str, str]]:
    """Slug and name of hardware with figures, by name."""
    query = (
        select(TABLE.c.hardware_slug, func.min(TABLE.c.hardware))
        .where(TABLE.c.level.in_(["hardware", "published"]))
        .group_by(TABLE.c.hardware_slug)
        .order_by(func.min(TABLE.c.hardware))
        .limit(MOST_HARDWARE)
    )
    return [(slug, name) for slug, name in session.connection().execute(query)]


def result_with_id(session: Session, result_id: str) -> tuple[Submission, Measurement]:
    """One result. If the projector has not applied it yet, its status is ``pending``, and its row
    has only the columns that follow from the payload.

    Raises:
        NotFound: no result has this id.
        Gone: it was withdrawn or is hidden.
    """
    submission = None
    if re.fullmatch(r"[0-9a-f]{16}", result_id):
        submission = session.get(Submission, result_id)
        withdrawn = None if submission else session.get(Withdrawn, result_id)
        if withdrawn is not None:
            raise Gone(f"result {result_id} was withdrawn on {withdrawn.withdrawn_at:%Y-%m-%d}")
    if submission is None:
        raise NotFound(
            f"no result {result_id[:40]!r}",
            field="id",
            hint="GET /api/v1/results lists the results there are",
        )
    row = session.get(Measurement, result_id)
    if row is not None and row.moderation == "hidden":
        raise Gone(f"result {result_id} is hidden by its sender")
    return submission, row or pending_row(submission)


def reproduction_of(session: Session, row: Measurement) -> ReproductionAnswer | None:
    """How a result compares with other owners; None before level 3 and for a pending one."""
    if row.status == "pending":
        return None
    found = reproduced.of_result(session.connection(), row)
    return None if found is None else ReproductionAnswer.of(found)


def rows_of(session: Session, submissions: Sequence[Submission]) -> list[Measurement]:
    """The rows of submissions, in their order; a pending one has what follows from its payload."""
    ids = [submission.id for submission in submissions]
    query = select(Measurement).where(col(Measurement.submission_id).in_(ids))
    rows = {row.submission_id: row for row in session.scalars(query)}
    return [rows.get(submission.id) or pending_row(submission) for submission in submissions]


def pending_row(submission: Submission) -> Measurement:
    """The columns of a result that the projector has not applied yet."""
    of_payload = columns.of_result(columns.stored_result(submission.payload))
    return Measurement(
        **{**of_payload, "status": "pending"},
        submission_id=submission.id,
        received_at=submission.received_at,
        verdicts="[]",
    )


def left_out(session: Session, row: Measurement) -> bool:
    """Whether a result does not count in its hardware's figure because it is disturbed and others
    are not, be they of its run, its machine, its owner or another one."""
    if not (row.disturbed and row.rankable):
        return False
    above = [subject.id for subject in lineage(subject_of(row.model_dump())).values()]
    query = select(TABLE.c.disturbed).where(TABLE.c.id.in_(above))
    return not all(session.connection().scalars(query))


def setup_of(row: Measurement) -> Setup:
    """The set-up of a row."""
    return Setup._make(getattr(row, name) for name in Setup._fields)


def results_query(filters: ResultFilters) -> Select[Submission, Measurement]:
    """A query for the results that pass the filters, newest first. It reads no payload."""
    shown = load_only(Submission.id, Submission.payload_sha256)  # type: ignore[arg-type]
    query = (
        select(Submission, Measurement)
        .options(shown)
        .where(Measurement.submission_id == Submission.id)  # type: ignore[arg-type]
        .where(RESULTS.c.moderation.is_distinct_from("hidden"))
        .where(*cell_conditions(RESULTS, filters), *result_conditions(filters))
    )
    for name in ("batch_size", "precision", "status", "key_id"):
        value = getattr(filters, name)
        if value is not None:
            query = query.where(getattr(Measurement, name) == value)
    if filters.run_id is not None:
        query = query.where(col(Submission.run_id) == filters.run_id)
    counts = col(Measurement.rankable)
    if filters.ranked is not None:
        query = query.where(counts.is_(filters.ranked))
    if filters.status == "failed":
        # A failed result is unranked, and unranked results have a separate index.
        query = query.where(counts.is_(False))
    return query.order_by(
        col(Measurement.received_at).desc(), col(Measurement.submission_id).desc()
    )


def results(
    session: Session, filters: ResultPageFilters
) -> tuple[list[tuple[Submission, Measurement]], str | None]:
    """A page of results, newest first, and the cursor of the next one.

    Raises:
        InvalidQuery: the cursor is invalid.
    """
    query = results_query(filters)
    if filters.cursor is not None:
        at, last = cursors.read(filters.cursor, str, str)
        received, identity = col(Measurement.received_at), col(Measurement.submission_id)
        moment = moment_of(at)
        query = query.where(or_(received < moment, and_(received == moment, identity < last)))
    rows = [*session.execute(query.limit(filters.limit + 1))]
    if len(rows) <= filters.limit:
        return rows, None
    rows = rows[: filters.limit]
    last = rows[-1][1]
    return rows, cursors.write(last.received_at.isoformat(), last.submission_id)


def moment_of(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidQuery(
            "cursor is not from this server",
            field="cursor",
            hint="copy next_cursor, or omit cursor",
        ) from None


def figures_where(session: Session, *conditions: ColumnElement[bool]) -> list[Figure]:
    """Stored figures, fastest first."""
    query = FIGURES.where(*conditions)
    return [figure(row) for row in session.connection().execute(query).all()]


def environments_where(conditions: Sequence[str]) -> Select[tuple[str]]:
    """Ids of the environments that meet every condition (:data:`.filters.Condition`)."""
    query = select(ENVIRONMENTS.c.id)
    for text in conditions:
        match = CONDITION.fullmatch(text)
        assert match is not None  # noqa: S101 - filters.Condition has checked it
        name, sign, value = match.groups()
        column = ENVIRONMENTS.c[f"{name}_key" if name in VERSIONS else name]
        wanted: Any = value
        if name in VERSIONS:
            wanted = version_key(value)
        elif name in NUMBERS:
            wanted = int(value)
        query = query.where(COMPARISONS[sign](column, wanted))
    return query


def cell_conditions(table: Any, filters: CellFilters) -> list[ColumnElement[bool]]:
    conditions = [table.c[name] == value for name, value in cell_values(filters).items()]
    if filters.q:
        conditions.append(table.c.hardware.icontains(filters.q, autoescape=True))
    if filters.family:
        conditions.append(families.condition(table, filters.family))
    return conditions


def cell_values(filters: CellFilters) -> dict[str, Any]:
    """The required values of columns, by name."""
    values = {
        "workload": filters.workload,
        "framework": filters.framework,
        "device": filters.device,
        "recipe": filters.recipe,
        "data": filters.data,
        "timing": filters.timing,
        "hardware_slug": filters.hardware,
        "machine_id": filters.machine_id,
    }
    return {name: value for name, value in values.items() if value is not None}


def result_conditions(filters: CellFilters) -> list[ColumnElement[bool]]:
    conditions = []
    if filters.trust is not None:
        conditions.append(RESULTS.c.trust_level >= filters.trust)
    if filters.where:
        conditions.append(RESULTS.c.environment_id.in_(environments_where(filters.where)))
    return conditions
