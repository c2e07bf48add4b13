"""Move the payloads of old results to an archive (:mod:`bench_server.db.archive`).

A payload is in the archive, and was read back, before its column changes. Results are moved in the
order in which they were received, so that the next run finds by bisection where to go on.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import LargeBinary, Row, bindparam, select, tuple_, type_coerce, update
from sqlmodel import Session

from ..db import archive, privileges
from ..db.archive import ArchiveProblem
from ..db.store import Store
from ..db.tables import Submission, Withdrawn, table_of

# Payloads of one transaction.
BATCH = 128
CLOSE = timedelta(seconds=1)
NOT_ALLOWED = (
    "this role of the database may not change payloads; set BENCH_SERVER_DATABASE_URL to the "
    "address of the role that owns the tables (trainmark_migrate)"
)


class Moved(NamedTuple):
    """Payloads that were moved, with their bytes, and erased objects of withdrawn results."""

    payloads: int
    payload_bytes: int
    erased: int


def move(
    store: Store, to: str, before: datetime, progress: Callable[[int], None] = lambda _: None
) -> Moved:
    """Move the payloads of results that were received before a time, and erase the objects of
    withdrawn results.

    Args:
        to: address of the archive.
        progress: is given the number of moved payloads after each batch.

    Raises:
        ArchiveProblem: the database's role may not change payloads, or an object cannot be stored,
            read or erased. What was moved stays so.
    """
    with store.reading() as session:
        if not privileges.may_archive(session.connection()):
            raise ArchiveProblem(NOT_ALLOWED)
        start = _start(session, before)
    count = total = 0
    place = {"at": start, "id": ""}
    while rows := _next(store, place, before):
        old = [row for row in rows if archive.address_in(row.stored) is None]
        pointers = {row.id: archive.put(to, row.stored) for row in old}
        with store.writing_in_turn() as session:
            for identity, pointer in pointers.items():
                session.connection().execute(MOVE, {"of": identity, "pointer": pointer})
        count += len(old)
        total += sum(len(row.stored) for row in old)
        place = {"at": rows[-1].received_at, "id": rows[-1].id}
        progress(count)
    return Moved(count, total, _erase_withdrawn(store, to))


def _next(store: Store, place: dict[str, Any], before: datetime) -> list[Row[Any]]:
    with store.reading() as session:
        return list(session.connection().execute(NEXT, {**place, "before": before}))


def _start(session: Session, before: datetime) -> datetime:
    """A time before which every payload was moved, and at most :data:`CLOSE` before the oldest
    other one."""

    def first_from(at: datetime) -> Row[Any] | None:
        place = {"at": at, "id": "", "before": before}
        return session.connection().execute(NEXT.limit(1), place).first()

    oldest = first_from(datetime.min.replace(tzinfo=before.tzinfo))
    low, high = before if oldest is None else oldest.received_at, before
    while high - low > CLOSE:
        middle = low + (high - low) / 2
        row = first_from(middle)
        if row is None or archive.address_in(row.stored) is None:
            high = middle
        else:
            low = row.received_at
    return low


def _erase_withdrawn(store: Store, to: str) -> int:
    """Erase objects that a withdrawal could not, and those that were stored while it went on."""
    with store.reading() as session:
        digests = session.connection().scalars(select(_WITHDRAWN.c.payload_sha256)).all()
    return sum(archive.remove(archive.address_of(to, digest)) for digest in digests)


_SUBMISSIONS, _WITHDRAWN = map(table_of, (Submission, Withdrawn))
NEXT = (
    select(
        _SUBMISSIONS.c.id,
        _SUBMISSIONS.c.received_at,
        type_coerce(_SUBMISSIONS.c.payload, LargeBinary).label("stored"),
    )
    .where(
        tuple_(_SUBMISSIONS.c.received_at, _SUBMISSIONS.c.id)
        > tuple_(bindparam("at", type_=_SUBMISSIONS.c.received_at.type), bindparam("id")),
        _SUBMISSIONS.c.received_at < bindparam("before", type_=_SUBMISSIONS.c.received_at.type),
    )
    .order_by(_SUBMISSIONS.c.received_at, _SUBMISSIONS.c.id)
    .limit(BATCH)
)
MOVE = (
    update(_SUBMISSIONS)
    .where(_SUBMISSIONS.c.id == bindparam("of"))
    .values(payload=bindparam("pointer", type_=LargeBinary()))
)
