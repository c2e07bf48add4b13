"""Results: one, a page of them, and what is left out of a figure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, and_, or_, select
from sqlalchemy.orm import load_only
from sqlmodel import Session, col

from bench_protocol.training import recomputation

from ..db.tables import LogEntry, Measurement, Submission, Withdrawn
from ..errors import Gone, NotFound
from ..ingest import columns
from ..ingest.columns import stored_result
from ..log import reader
from ..projection import reproduced
from ..ranking.rows import RESULTS, TABLE, lineage, subject_of
from ..recompute import jobs
from . import cursors
from .filters import ResultFilters, ResultPageFilters
from .types.results import ReproductionAnswer
from .types.trust import ReceiptAnswer, envelope_document, receipt_answer


def result_with_id(session: Session, result_id: str) -> tuple[Submission, Measurement]:
    """The row of a ``pending`` one has only the columns that follow from the payload. Raises
    NotFound, or Gone if it was withdrawn or is hidden."""
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


def reproduction_of(session: Session, row: Measurement) -> ReproductionAnswer | None:
    """How a result compares with other owners; None before level 3 and for a pending one."""
    if row.status == "pending":
        return None
    found = reproduced.of_result(session.connection(), row)
    return None if found is None else ReproductionAnswer.of(found)


def left_out(session: Session, row: Measurement) -> bool:
    """Whether it is disturbed, and others of its run, machine, owner or another one are not."""
    if not (row.disturbed and row.rankable):
        return False
    above = [subject.id for subject in lineage(subject_of(row)).values()]
    query = select(TABLE.c.disturbed).where(TABLE.c.id.in_(above))
    return not all(session.connection().scalars(query))


def results_query(
    filters: ResultFilters, oldest_first: bool = False
) -> Select[Submission, Measurement]:
    """A query for the results that pass the filters, newest first. It reads no payload."""
    shown = load_only(Submission.id, Submission.payload_sha256)  # type: ignore[arg-type]
    query = (
        select(Submission, Measurement)
        .options(shown)
        .where(Measurement.submission_id == Submission.id)  # type: ignore[arg-type]
        .where(RESULTS.c.moderation.is_distinct_from("hidden"))
        .where(*filters.criteria.of_results())
    )
    if filters.run_id is not None:
        query = query.where(col(Submission.run_id) == filters.run_id)
    counts = col(Measurement.rankable)
    if filters.ranked is not None:
        query = query.where(counts.is_(filters.ranked))
    if filters.status == "failed":
        # A failed result is unranked, and unranked results have a separate index.
        query = query.where(counts.is_(False))
    if filters.received_after is not None:
        query = query.where(col(Measurement.received_at) > filters.received_after)
    order = (col(Measurement.received_at), col(Measurement.submission_id))
    return query.order_by(*order if oldest_first else (one.desc() for one in order))


def results_page(
    session: Session, filters: ResultPageFilters
) -> tuple[list[tuple[Submission, Measurement]], str | None]:
    """A page, newest first unless ``sort`` differs, and the next cursor. Raises InvalidQuery."""
    oldest_first = filters.sort == "received_at"
    query = results_query(filters, oldest_first)
    if filters.cursor is not None:
        at, last = cursors.read(filters.cursor, str, str)
        received, identity = col(Measurement.received_at), col(Measurement.submission_id)
        moment = cursors.moment_of(at)
        older, newer = (
            or_(received < moment, and_(received == moment, identity < last)),
            or_(received > moment, and_(received == moment, identity > last)),
        )
        query = query.where(newer if oldest_first else older)
    rows = [*session.execute(query.limit(filters.limit + 1))]
    if len(rows) <= filters.limit:
        return rows, None
    rows = rows[: filters.limit]
    last = rows[-1][1]
    return rows, cursors.write(last.received_at.isoformat(), last.submission_id)


@dataclass(frozen=True)
class RecomputationsAnswer:
    """Recomputations in the order of the log, with their receipts."""

    recomputations: tuple[dict[str, Any], ...]
    receipts: tuple[ReceiptAnswer, ...]


def recomputations_of(session: Session, submission: Submission) -> RecomputationsAnswer:
    job = recomputation.job(stored_result(submission.payload))
    stated = jobs.stated(session.connection(), [job.key] if job else [])
    indices = sorted(item.log_index for item in stated.values())
    found = session.scalars(select(LogEntry).where(col(LogEntry.log_index).in_(indices)))
    entries = sorted(found, key=lambda entry: entry.log_index)
    opened = [reader.envelope_of(entry, None) for entry in entries]
    return RecomputationsAnswer(
        tuple(envelope_document(each) for each in opened if each is not None),
        tuple(receipt_answer(receipt) for receipt in reader.receipts(session, entries)),
    )
