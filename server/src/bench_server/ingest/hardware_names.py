"""The displayed name of a hardware: that of its first result, whatever later ones call it.

Names with one slug differ in case and punctuation. The first one stays, so that no new key renames
a hardware. If its results are withdrawn, the oldest one that is left names it, as in a reindex.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from ..db.tables import Submission, table_of
from ..ranking.rows import RESULTS, TABLE
from . import columns


def put(connection: Connection, results: Iterable[dict[str, Any]]) -> None:
    """Give the columns of new results, in the order of the log, the names of stored ones."""
    known: dict[str, str] = {}
    for row in results:
        slug = row["hardware_slug"]
        if slug not in known:
            known[slug] = connection.scalar(STORED, {"slug": slug}) or row["hardware"]
        row["hardware"] = known[slug]


def put_again(connection: Connection, slugs: Iterable[str]) -> None:
    """Name hardware again of which results were withdrawn."""
    for slug in sorted(slugs):
        payload = connection.scalar(FIRST, {"slug": slug})
        if payload is not None:
            own: Mapping[str, Any] = columns.of_result(columns.stored_result(payload))
            for table in (RESULTS, TABLE):
                other = (table.c.hardware_slug == slug) & (table.c.hardware != own["hardware"])
                connection.execute(update(table).where(other).values(hardware=own["hardware"]))


# Statements, built once. The index of a hardware's results has their order.
_SUBMISSIONS = table_of(Submission)
_IN_ORDER = (RESULTS.c.received_at, RESULTS.c.submission_id)
_OF_SLUG = RESULTS.c.hardware_slug == bindparam("slug")
STORED = select(RESULTS.c.hardware).where(_OF_SLUG).order_by(*_IN_ORDER).limit(1)
FIRST = (
    select(_SUBMISSIONS.c.payload)
    .join(RESULTS, RESULTS.c.submission_id == _SUBMISSIONS.c.id)
    .where(_OF_SLUG)
    .order_by(*_IN_ORDER)
    .limit(1)
)
