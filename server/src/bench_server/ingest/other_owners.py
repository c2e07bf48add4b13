"""Statistics over other owners: their times on the same hardware in the same set-up.

The outlier check in :mod:`.submission_checks` uses them. Up to ``FEW`` owners are read one by one.
For more, only the quartiles are read, so that a thousand owners cost little more than ten.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, NamedTuple

from sqlalchemy import Connection, Integer, Select, String, bindparam, select, union_all

from ..db.bulk import TOGETHER, among, numbered
from ..ranking.rows import TABLE

# Up to this number, owners are read one by one. Findings depend on it (docs/protocol.md, Checks).
FEW = 30
QUARTERS = (1, 2, 3)
# Standard deviation of a normal distribution over its median absolute deviation.
MAD_TO_SIGMA = 1.4826
# Interquartile range of a normal distribution over its standard deviation.
QUARTILES_TO_SIGMA = 1.349
# The id of a hardware's aggregate in a set-up, and of the submitting owner's aggregate below it.
Asked = tuple[str, str]


class OtherOwners(NamedTuple):
    """Number of owners, median of their log times, and a robust estimate of the standard
    deviation."""

    owners: int
    middle: float
    deviation: float


NONE = OtherOwners(0, 0.0, 0.0)


def of_times(times_ns: Sequence[float]) -> OtherOwners:
    """Statistics of owners from all of their times: up to ``FEW`` by median and median absolute
    deviation (Iglewicz and Hoaglin 1993), more by their quartiles."""
    if not times_ns:
        return NONE
    if len(times_ns) > FEW:
        ordered = sorted(times_ns)
        places = (len(ordered) * quarter // 4 for quarter in QUARTERS)
        return of_quartiles(len(ordered), [ordered[place] for place in places])
    logs = [math.log(time) for time in times_ns]
    middle = median(logs)
    return OtherOwners(len(logs), middle, MAD_TO_SIGMA * median(abs(log - middle) for log in logs))


def of_quartiles(owners: int, quartiles_ns: Sequence[float]) -> OtherOwners:
    """Statistics of owners from the quartiles of their times."""
    low, middle, high = map(math.log, quartiles_ns)
    return OtherOwners(owners, middle, (high - low) / QUARTILES_TO_SIGMA)


def others(connection: Connection, asked: Iterable[Asked]) -> dict[Asked, OtherOwners]:
    """Statistics over all owners except ``own``. The answer is the same whether or not ``own``
    already has an aggregate."""
    wanted = set(asked)
    times: defaultdict[str, dict[str, float]] = defaultdict(dict)
    counts: dict[str, int] = {}
    values = {"places": {place for place, _ in wanted}, "whole": FEW + 1}
    for place, count, owner, time in connection.execute(OWNERS, values).all():
        if owner is None:
            counts[place] = count
        else:
            times[place][owner] = time
    far = [(place, own) for place, own in wanted if place in counts]
    found = {
        (place, own): of_times([time for id, time in times[place].items() if id != own])
        for place, own in wanted.difference(far)
    }
    there = set(connection.scalars(THERE, {"ids": [own for _, own in far]})) if far else set()
    many = {(place, own): counts[place] - (own in there) for place, own in far}
    questions = [
        {"place": place, "own": own, **{f"q{q}": count * q // 4 for q in QUARTERS}}
        for (place, own), count in many.items()
    ]
    for parameters in numbered(questions):
        for place, own, *quartiles in connection.execute(QUARTILES, parameters).all():
            found[place, own] = of_quartiles(many[place, own], quartiles)
    return found


_OWNER = TABLE.alias("of_owner")
# A row for each of up to ``FEW`` owners, or one row without owner for more. All columns are in the
# index.
OWNERS = (
    select(TABLE.c.id, TABLE.c.children, _OWNER.c.id, _OWNER.c.ns_per_sample)
    .outerjoin_from(
        TABLE, _OWNER, (_OWNER.c.parent_id == TABLE.c.id) & (TABLE.c.children <= bindparam("whole"))
    )
    .where(among(TABLE.c.id, "places"))
)


THERE = select(TABLE.c.id).where(among(TABLE.c.id, "ids"))


def _quartiles(number: int) -> Select[Any]:
    """The quartiles of one of a statement's set-ups."""
    place = bindparam(f"place_{number}", type_=String)
    own = bindparam(f"own_{number}", type_=String)
    in_order = (
        select(_OWNER.c.ns_per_sample)
        .where(_OWNER.c.parent_id == place, _OWNER.c.id != own)
        .order_by(_OWNER.c.ns_per_sample, _OWNER.c.id)
        .limit(1)
    )
    quartiles = (
        in_order.offset(bindparam(f"q{quarter}_{number}", type_=Integer)).scalar_subquery()
        for quarter in QUARTERS
    )
    return select(place, own, *quartiles)


QUARTILES = union_all(*map(_quartiles, range(TOGETHER)))
