"""Reads: which rows a question is about. What they mean is in :mod:`.rank`."""

import base64
import binascii
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy
from sqlalchemy import ColumnElement, and_, func, or_
from sqlmodel import Session, col, select

from bench_protocol.workloads import Workload

from .filters import BoardFilters, CellFilters, ResultFilters
from .problems import InvalidQuery, NotFound
from .rank import Repeat, Setup
from .tables import Measurement, Submission

MOST_UNRANKED = 12
MOST_HARDWARE = 500
# In the order of rank.Repeat's and rank.Setup's fields, the set-up in the middle.
REPEAT_COLUMNS = (
    "submission_id",
    "key_id",
    "machine_id",
    "hardware",
    "hardware_slug",
    "framework",
    "device",
    "recipe",
    "batch_size",
    "precision",
    "data",
    "ns_per_sample",
    "spread",
    "trust_level",
)


def board_repeats(session: Session, workload: Workload, filters: BoardFilters) -> list[Repeat]:
    """Every repeat that counts on a workload's board."""
    return _repeats(
        session,
        [
            col(Measurement.workload_digest) == workload.digest,
            *_board_conditions(workload, filters),
        ],
    )


def board_unranked(
    session: Session, workload: Workload, filters: BoardFilters
) -> Sequence[Measurement]:
    """The newest results that do not count there."""
    return session.exec(
        select(Measurement)
        .where(col(Measurement.workload_digest) == workload.digest)
        .where(col(Measurement.rankable).is_(False))
        .where(*_board_conditions(workload, filters))
        .order_by(col(Measurement.received_at).desc(), col(Measurement.submission_id).desc())
        .limit(MOST_UNRANKED)
    ).all()


def hardware_repeats(session: Session, slug: str, digest: str) -> list[Repeat]:
    """Every repeat of a hardware on a workload that counts."""
    return _repeats(
        session,
        [col(Measurement.hardware_slug) == slug, col(Measurement.workload_digest) == digest],
    )


def frameworks(session: Session) -> list[str]:
    """Frameworks that any result names."""
    return sorted(session.exec(select(Measurement.framework).distinct()).all())


def ranked_hardware(session: Session) -> list[tuple[str, str]]:
    """Slug and name of hardware with results that count, by name."""
    query = (
        select(Measurement.hardware_slug, func.min(Measurement.hardware))
        .where(col(Measurement.rankable))
        .group_by(col(Measurement.hardware_slug))
        .order_by(func.min(Measurement.hardware))
        .limit(MOST_HARDWARE)
    )
    return [(slug, name) for slug, name in session.exec(query)]


def result_with_id(session: Session, result_id: str) -> tuple[Submission, Measurement]:
    """One result.

    Raises:
        NotFound: there is none with this id.
    """
    found = None
    if re.fullmatch(r"[0-9a-f]{16}", result_id):
        found = session.exec(
            select(Submission, Measurement)
            .where(Submission.id == result_id)
            .where(Measurement.submission_id == Submission.id)
        ).first()
    if found is None:
        raise NotFound(
            f"no result {result_id[:40]!r}",
            field="id",
            mend="GET /api/v1/results lists the results there are",
        )
    return found


def setup_of(row: Measurement) -> Setup:
    """How a row's workload was trained."""
    return Setup._make(getattr(row, name) for name in Setup._fields)


def as_repeat(row: Measurement) -> Repeat:
    """A measured row as the ranking sees it, whether it counts or not."""
    return _repeat([getattr(row, name) for name in REPEAT_COLUMNS])


def results(
    session: Session, filters: ResultFilters
) -> tuple[list[tuple[Submission, Measurement]], str | None]:
    """A page of results, newest first, and the cursor of the next one.

    The cursor is the last row's place, not a count: what arrives meanwhile moves nothing.

    Raises:
        InvalidQuery: the cursor is none of ours.
    """
    query = (
        select(Submission, Measurement)
        .where(Measurement.submission_id == Submission.id)
        .where(*_cell_conditions(filters))
    )
    for name in ("batch_size", "precision", "status", "rankable", "machine_id", "key_id", "run_id"):
        value = getattr(filters, name)
        if value is not None:
            query = query.where(getattr(Measurement, name) == value)
    received, identity = col(Measurement.received_at), col(Measurement.submission_id)
    if filters.cursor is not None:
        at, last = _read_cursor(filters.cursor)
        query = query.where(or_(received < at, and_(received == at, identity < last)))
    query = query.order_by(received.desc(), identity.desc()).limit(filters.limit + 1)
    rows = list(session.exec(query).all())
    if len(rows) <= filters.limit:
        return rows, None
    rows = rows[: filters.limit]
    return rows, _cursor(rows[-1][1])


def _repeats(session: Session, conditions: list[ColumnElement[bool]]) -> list[Repeat]:
    columns: list[Any] = [getattr(Measurement, name) for name in REPEAT_COLUMNS]
    query = sqlalchemy.select(*columns).where(col(Measurement.rankable), *conditions)
    return [_repeat(row) for row in session.connection().execute(query)]


def _repeat(row: Sequence[Any]) -> Repeat:
    owner_and_hardware, setup, figures = row[:5], row[5:11], row[11:]
    return Repeat._make((*owner_and_hardware, Setup._make(setup), *figures))


def _board_conditions(workload: Workload, filters: BoardFilters) -> list[ColumnElement[bool]]:
    conditions = _cell_conditions(filters)
    if filters.batch_size != "any":
        batch_size = filters.batch_size or workload.batch_size
        conditions.append(col(Measurement.batch_size) == batch_size)
    if filters.precision != "any":
        conditions.append(col(Measurement.precision) == (filters.precision or "float32"))
    return conditions


def _cell_conditions(filters: CellFilters) -> list[ColumnElement[bool]]:
    conditions = [
        col(column) == value
        for column, value in (
            (Measurement.workload, filters.workload),
            (Measurement.framework, filters.framework),
            (Measurement.device, filters.device),
            (Measurement.recipe, filters.recipe),
            (Measurement.data, filters.data),
            (Measurement.hardware_slug, filters.hardware),
        )
        if value is not None
    ]
    if filters.q:
        conditions.append(col(Measurement.hardware).icontains(filters.q, autoescape=True))
    return conditions


def _cursor(row: Measurement) -> str:
    text = f"{row.received_at.isoformat()} {row.submission_id}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read_cursor(cursor: str) -> tuple[datetime, str]:
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        at, identity = re.fullmatch(r"(\S{1,40}) ([0-9a-f]{16})", raw.decode("ascii")).groups()  # type: ignore[union-attr]
        moment = datetime.fromisoformat(at)
        moment.astimezone()
    except (ValueError, AttributeError, OverflowError, binascii.Error):
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidQuery(
            "cursor is none of ours", field="cursor", mend="take it from next_cursor, or leave it"
        )
    return moment, identity
