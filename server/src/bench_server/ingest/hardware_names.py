"""The displayed name of a hardware: that of its best evidence, whatever later results call it.

Names with one slug differ in letter case and spaces. Ranked results of confirmed owners come before
those of established ones, then those of new ones; of these the highest trust level, then the oldest
result names the hardware. If none is ranked, the oldest does. So no new key renames a hardware.
"""

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import Connection, bindparam, case, select, update

from ..db.lists import among
from ..db.tables import Owner, table_of
from ..ranking.rows import RESULTS, TABLE


def put(connection: Connection, results: Iterable[dict[str, Any]]) -> None:
    """Give the columns of new results, in the order of the log, the names of stored ones."""
    known: dict[str, str] = {}
    for row in results:
        slug = row["hardware_slug"]
        if slug not in known:
            known[slug] = connection.scalar(STORED, {"slug": slug}) or row["hardware"]
        row["hardware"] = known[slug]


def put_again(connection: Connection, slugs: Collection[str]) -> None:
    """Name hardware again whose results or owners changed."""
    for slug in sorted(connection.scalars(WITH_OTHERS, {"ids": sorted(slugs)})):
        name = connection.scalar(BEST, {"slug": slug})
        for table in (RESULTS, TABLE):
            other = (table.c.hardware_slug == slug) & (table.c.hardware != name)
            connection.execute(update(table).where(other).values(hardware=name))


# Statements, built once. The index of a hardware's results has their order.
_OWNERS = table_of(Owner)
_IN_ORDER = (RESULTS.c.received_at, RESULTS.c.submission_id)
_OF_SLUG = RESULTS.c.hardware_slug == bindparam("slug")
STORED = select(RESULTS.c.hardware).where(_OF_SLUG).order_by(*_IN_ORDER).limit(1)
# Slugs of results whose own name is not the displayed one, by an index of these alone.
WITH_OTHERS = (
    select(RESULTS.c.hardware_slug)
    .where(among(RESULTS.c.hardware_slug, "ids"), RESULTS.c.hardware_sent != RESULTS.c.hardware)
    .distinct()
)
_EVIDENCE = case(
    (RESULTS.c.rankable.is_(False), 0),
    (_OWNERS.c.confirmed, 20 + RESULTS.c.trust_level),
    (_OWNERS.c.established, 10 + RESULTS.c.trust_level),
    else_=RESULTS.c.trust_level,
)
BEST = (
    select(RESULTS.c.hardware_sent)
    .outerjoin(_OWNERS, _OWNERS.c.label == RESULTS.c.owner)
    .where(_OF_SLUG)
    .order_by(_EVIDENCE.desc(), *_IN_ORDER)
    .limit(1)
)
