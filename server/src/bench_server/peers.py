"""What other owners measured on the same hardware in the same set-up: what a new result is held
against.

Few owners are read one by one. Of many, three places in their order say enough, so that holding a
result against a thousand owners costs little more than against ten.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import median
from typing import Any, NamedTuple

from sqlalchemy import Connection, Integer, Select, String, bindparam, select, union_all

from .standing_rows import TABLE
from .statements import among

FEW = 30
# So many places are asked for in one statement.
TOGETHER = 8
QUARTERS = (1, 2, 3)
# The median absolute deviation of a normal distribution times this is its standard deviation.
MAD_TO_SIGMA = 1.4826
# The range between the quartiles of a normal distribution is so many standard deviations.
QUARTILES_TO_SIGMA = 1.349


class Peers(NamedTuple):
    """How many owners, the middle of the logarithms of their times, and their standard deviation,
    estimated so that a few wild ones do not matter."""

    owners: int
    middle: float
    deviation: float


NONE = Peers(0, 0.0, 0.0)


@dataclass(frozen=True)
class Owners:
    """The owners of one hardware in one set-up: nanoseconds per sample of each by the id of its
    standing where they are few; else their number and the quartiles of their times."""

    times: Mapping[str, float]
    count: int = 0
    quartiles: Sequence[float] = ()

    def besides(self, own: str) -> Peers:
        """The others; of many owners all, among whom one more or less moves nothing."""
        if self.quartiles:
            low, middle, high = map(math.log, self.quartiles)
            return Peers(self.count, middle, (high - low) / QUARTILES_TO_SIGMA)
        return of_times([time for owner, time in self.times.items() if owner != own])


def of_times(times_ns: Sequence[float]) -> Peers:
    """By median and median absolute deviation (Iglewicz and Hoaglin 1993)."""
    if not times_ns:
        return NONE
    logs = [math.log(time) for time in times_ns]
    middle = median(logs)
    return Peers(len(logs), middle, MAD_TO_SIGMA * median(abs(log - middle) for log in logs))


def of_places(connection: Connection, places: Iterable[str]) -> dict[str, Owners]:
    """The owners by the id of the hardware's standing (:func:`.standing_rows.lineage`)."""
    times: defaultdict[str, dict[str, float]] = defaultdict(dict)
    many: dict[str, int] = {}
    wanted = set(places)
    asked = {"places": wanted, "few": FEW}
    for place, count, owner, time in connection.execute(OWNERS, asked).all():
        if owner is None:
            many[place] = count
        else:
            times[place][owner] = time
    found = {place: Owners(times.get(place, {})) for place in wanted}
    for start in range(0, len(many), TOGETHER):
        # The last ones are asked for again where there are fewer: the text stays the same.
        asked_for = [*islice(many, start, start + TOGETHER)]
        asked_for += asked_for[-1:] * (TOGETHER - len(asked_for))
        values = {f"place_{number}": place for number, place in enumerate(asked_for)} | {
            f"q{quarter}_{number}": many[place] * quarter // 4
            for number, place in enumerate(asked_for)
            for quarter in QUARTERS
        }
        for place, *quartiles in connection.execute(QUARTILES, values).all():
            found[place] = Owners({}, many[place], quartiles)
    return found


_OWNER = TABLE.alias("of_owner")
# A row for each of few owners, or one with none for many. No more of an owner than its index has.
OWNERS = (
    select(TABLE.c.id, TABLE.c.children, _OWNER.c.id, _OWNER.c.ns_per_sample)
    .outerjoin_from(
        TABLE, _OWNER, (_OWNER.c.parent_id == TABLE.c.id) & (TABLE.c.children <= bindparam("few"))
    )
    .where(among(TABLE.c.id, "places"))
)


def _quartiles(number: int) -> Select[Any]:
    """The quartiles of one place of several that a statement asks for."""
    place = bindparam(f"place_{number}", type_=String)
    in_order = (
        select(_OWNER.c.ns_per_sample)
        .where(_OWNER.c.parent_id == place)
        .order_by(_OWNER.c.ns_per_sample, _OWNER.c.id)
        .limit(1)
    )
    quartiles = (
        in_order.offset(bindparam(f"q{quarter}_{number}", type_=Integer)).scalar_subquery()
        for quarter in QUARTERS
    )
    return select(place, *quartiles)


QUARTILES = union_all(*map(_quartiles, range(TOGETHER)))
