"""Reindex: rebuild every derived table from the stored submissions and the log.

The log is replayed in its order: key events, results, and acts on keys, owners and results, each by
the function that applied it at acceptance. Afterwards ``measurement``, ``environment``,
``standing``, ``owner`` and the status of each ``signing_key`` follow from the log, so a fixed
computation corrects old rows. Three things are not in the log and do not change: names of keys,
pending approvals, and the findings of the outlier check at acceptance. That check depends on
results that may have been erased since, so it does not run again.
"""

from collections.abc import Iterator

from sqlalchemy import and_, delete, or_, update
from sqlmodel import Session, col, select

from bench_protocol import acts, envelope

from ..db.store import Store
from ..db.tables import Aggregate, EnvironmentRow, LogEntry, Measurement, Owner, Submission
from ..log import writer
from ..ranking import published
from . import key_events, moderation
from . import save as saving
from .columns import stored_result

BATCH = 500


def reindex(store: Store, origin: str) -> int:
    """Rebuild in one transaction, so that readers see the old rows or the new ones.

    Args:
        origin: the name under which this server gave its challenges.

    Returns:
        The number of results.
    """
    with store.writing() as session:
        writer.take_turn(session)
        for table in (Aggregate, Measurement, EnvironmentRow):
            session.execute(delete(table))
        session.execute(update(Owner).values(confirmed=False))
        published.remake(session)
        count = 0
        for entry, submission in _logged(session):
            if submission is not None:
                result = stored_result(submission.payload)
                row = saving.derived(session, origin, submission, result, entry.log_index)
                saving.save_rows(session, [(row, result)])
                count += 1
                continue
            opened = envelope.read(entry.envelope or b"")
            if entry.kind == "key_event":
                key_events.replay(session, opened, entry.logged_at)
            elif (act := acts.parse(acts.Act, opened.payload)).act != "rename":
                moderation.apply(session, act, entry.logged_at)
        return count


def _logged(session: Session) -> Iterator[tuple[LogEntry, Submission | None]]:
    """Everything that was not withdrawn, in the log's order; a result with what was received."""
    query = (
        select(LogEntry, Submission)
        .outerjoin(
            Submission,
            and_(col(LogEntry.submission_id) == Submission.id, col(LogEntry.kind) == "result"),
        )
        .where(or_(col(LogEntry.envelope).is_not(None), col(Submission.id).is_not(None)))
        .order_by(col(LogEntry.log_index))
    )
    return iter(session.exec(query.execution_options(yield_per=BATCH)))
