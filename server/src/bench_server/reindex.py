"""Rebuilds every derived table from what was received.

``measurement``, ``environment`` and ``standing`` are functions of the stored payloads, so a
mistake in how they are computed is mended by computing them again.
"""

from collections.abc import Iterator
from itertools import islice

from sqlalchemy import delete, insert, select
from sqlmodel import Session, col

from . import standings
from .attributes import environment_row
from .db import Store
from .derive import measurement_row, stored_result
from .tables import EnvironmentRow, Measurement, Standing, Submission

BATCH = 500


def reindex(store: Store) -> int:
    """Rebuild in one transaction, so that readers see the old rows or the new ones.

    Returns:
        The number of results.
    """
    with store.writing() as session:
        for table in (Standing, Measurement, EnvironmentRow):
            session.execute(delete(table))
        count, environments = 0, set[str]()
        received = _submissions(session)
        while submissions := list(islice(received, BATCH)):
            rows = []
            for submission in submissions:
                result = stored_result(submission.payload)
                environment = environment_row(result)
                if environment.id not in environments:
                    environments.add(environment.id)
                    session.execute(insert(EnvironmentRow).values(environment.model_dump()))
                rows.append(measurement_row(submission, result, submission.key_id))
            session.execute(insert(Measurement), [row.model_dump() for row in rows])
            standings.add(session, rows)
            count += len(rows)
        return count


def _submissions(session: Session) -> Iterator[Submission]:
    """Everything received, in its order."""
    query = select(Submission).order_by(col(Submission.received_at), col(Submission.id))
    return iter(session.scalars(query.execution_options(yield_per=BATCH)))
