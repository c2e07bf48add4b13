"""Rebuilds every derived table from what was received and logged.

``measurement``, ``environment`` and ``standing`` are functions of the stored payloads and of the
acts in the log, so a mistake in how they are computed is mended by computing them again, in the
log's order. Keys and owners are no part of it: they are kept as the key events and acts left them.
"""

from collections.abc import Iterator

from sqlalchemy import delete
from sqlmodel import Session, col, select

from bench_protocol import acts, envelope

from . import ingest, judge, moderation, published, standings
from .db import Store
from .derive import stored_result
from .tables import EnvironmentRow, LogEntry, Measurement, Standing, Submission

BATCH = 500


def reindex(store: Store, origin: str) -> int:
    """Rebuild in one transaction, so that readers see the old rows or the new ones.

    Args:
        origin: the name under which this server gave its challenges.

    Returns:
        The number of results.
    """
    with store.writing() as session:
        for table in (Measurement, EnvironmentRow):
            session.execute(delete(table))
        count = 0
        for submission, log_index in _logged_results(session):
            result = stored_result(submission.payload)
            row = ingest.derived(session, origin, submission, result, log_index)
            ingest.save_row(session, row, result)
            if row.trust_level >= 3:
                judge.reproduce(session, row)
            count += 1
        for entry in _acts_on_results(session):
            act = acts.parse(acts.Act, envelope.read(entry.envelope or b"").payload)
            moderation.apply_to_result(session, act, entry.logged_at)
        session.execute(delete(Standing))
        published.stand(session)
        rows = session.exec(select(Measurement).order_by(col(Measurement.log_index))).all()
        for start in range(0, len(rows), BATCH):
            standings.add(session, rows[start : start + BATCH])
        return count


def _logged_results(session: Session) -> Iterator[tuple[Submission, int]]:
    query = (
        select(Submission, LogEntry.log_index)
        .where(LogEntry.submission_id == Submission.id)
        .where(LogEntry.kind == "result")
        .order_by(col(LogEntry.log_index))
    )
    return iter(session.exec(query.execution_options(yield_per=BATCH)))


def _acts_on_results(session: Session) -> Iterator[LogEntry]:
    query = (
        select(LogEntry)
        .where(LogEntry.kind == "act", col(LogEntry.submission_id).is_not(None))
        .order_by(col(LogEntry.log_index))
    )
    return iter(session.exec(query).all())
