"""Rebuilds every derived table from what was received and logged.

``measurement``, ``environment`` and ``standing`` are functions of the stored payloads and of the
acts in the log, so a mistake in how they are computed is mended by computing them again, in the
log's order. Keys and owners are no part of it: they are kept as the key events and acts left them.
"""

from collections.abc import Iterator

from sqlalchemy import and_, delete
from sqlmodel import Session, col, select

from bench_protocol import acts, envelope

from . import moderation, published, saving
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
        for table in (Standing, Measurement, EnvironmentRow):
            session.execute(delete(table))
        published.stand(session)
        count = 0
        for entry, submission in _logged(session):
            if submission is None:
                act = acts.parse(acts.Act, envelope.read(entry.envelope or b"").payload)
                moderation.apply_to_result(session, act, entry.logged_at)
            else:
                result = stored_result(submission.payload)
                row = saving.derived(session, origin, submission, result, entry.log_index)
                saving.save_rows(session, [(row, result)])
                count += 1
        return count


def _logged(session: Session) -> Iterator[tuple[LogEntry, Submission | None]]:
    """Every result, with what was received, and every act on a result, in the log's order."""
    query = (
        select(LogEntry, Submission)
        .outerjoin(
            Submission,
            and_(col(LogEntry.submission_id) == Submission.id, col(LogEntry.kind) == "result"),
        )
        .where(col(LogEntry.kind).in_(("result", "act")), col(LogEntry.submission_id).is_not(None))
        .order_by(col(LogEntry.log_index))
    )
    return iter(session.exec(query.execution_options(yield_per=BATCH)))
