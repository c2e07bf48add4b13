"""Count what senders leave out, by key and day, so that no answer reads all challenges
(:mod:`bench_server.answers.omissions`)."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, exists, not_, select, update

from ..db.lists import among
from ..db.tables import Challenge, LeftOut, table_of
from ..db.upsert import upsert


def add(connection: Connection, key_id: str, at: datetime, **numbers: int) -> None:
    """Add to what a key left out on the day (UTC) of a moment: challenges or withdrawn results."""
    row = {"key_id": key_id, "day": at.date(), "challenges": 0, "withdrawn": 0} | numbers
    upsert(connection, table_of(LeftOut), [row], added=True)


def count_last(connection: Connection, key_id: str, new_id: str) -> None:
    """Count a key's last challenge before a new one, if its run has no result."""
    for issued_at in connection.scalars(LAST, {"of_key": key_id, "new_id": new_id}).all():
        add(connection, key_id, issued_at, challenges=1)


def use(connection: Connection, challenge_ids: Sequence[str]) -> None:
    """Mark challenges as used, and count those of their runs no longer."""
    for key_id, run_id in connection.execute(USED, {"ids": challenge_ids}).all():
        of_run = {"of_key": key_id, "of_run": run_id}
        for issued_at in connection.scalars(ANSWERED, of_run).all():
            add(connection, key_id, issued_at, challenges=-1)


# Statements, built once.
_C = table_of(Challenge)
_OTHER, _SAME = _C.alias(), _C.alias()
_LAST = (
    select(_OTHER.c.id)
    .where(_OTHER.c.key_id == bindparam("of_key"), _OTHER.c.id != bindparam("new_id"))
    .order_by(_OTHER.c.issued_at.desc(), _OTHER.c.id)
    .limit(1)
)
_USED = exists().where(_SAME.c.key_id == _C.c.key_id, _SAME.c.run_id == _C.c.run_id, _SAME.c.used)
LAST = (
    update(_C)
    .where(_C.c.id == _LAST.scalar_subquery(), not_(_C.c.counted), ~_USED)
    .values(counted=True)
    .returning(_C.c.issued_at)
)
_UNUSED = update(_C).where(among(_C.c.id, "ids"), not_(_C.c.used))
USED = _UNUSED.values(used=True).returning(_C.c.key_id, _C.c.run_id)
_COUNTED = update(_C).where(
    _C.c.key_id == bindparam("of_key"), _C.c.run_id == bindparam("of_run"), _C.c.counted
)
ANSWERED = _COUNTED.values(counted=False).returning(_C.c.issued_at)
