"""Outliers: compare a result with other owners' times on the same hardware in the same set-up.

Up to ``FEW`` owners are read one by one. For more, only the quartiles are read, so that a thousand
owners cost little more than ten.
"""

import math
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, NamedTuple

from sqlalchemy import Connection, Integer, bindparam, func, select

from ..checks.verdicts import CheckVerdict, Effect, Finding
from ..ranking.owners import ESTABLISHED, NEW, OwnerCounts
from ..ranking.rows import TABLE

OUTLIER = "outlier"
OWNERS_FOR_OUTLIERS = 5
OUTLIER_DEVIATIONS = 5.0
# Least deviation: where owners agree to the digit, ordinary differences are no outliers.
LEAST_DEVIATION = 0.02
# Up to this number, owners are read one by one. Findings depend on it (docs/protocol.md, Checks).
FEW = 30
QUARTERS = (1, 2, 3)
# Standard deviation of a normal distribution over its median absolute deviation.
MAD_TO_SIGMA = 1.4826
# The median absolute deviation of few owners is often far too small by chance. With these factors a
# sixth owner of equal hardware is an outlier in less than 1 % of cases (simulated in the tests; the
# plain estimate: 6.8 % for five owners, 0.9 % for ten).
FEW_OWNERS = {5: 3.2, 6: 1.8, 7: 1.75, 8: 1.3, 9: 1.3, 10: 1.1, 11: 1.1}
# An outlier that is faster or slower than the median of others by more than this is held back.
QUARANTINED_RATIO = 2.0
# A slow machine is often an honest one.
FAR_BELOW = (
    "; far below the other owners of this hardware: a power limit, heat, a shared processor or "
    "other programs can be the reason"
)
# Interquartile range of a normal distribution over its standard deviation.
QUARTILES_TO_SIGMA = 1.349


class Place(NamedTuple):
    """The id of a hardware's aggregate in a set-up, and of the sender's aggregate below it;
    ``kind``: the place of the sender's kind in :data:`..ranking.owners.OWNER_KINDS`."""

    hardware: str
    owner: str
    kind: int = NEW


class OtherOwners(NamedTuple):
    """Number of owners, median of their log times, and a robust estimate of the standard
    deviation."""

    owners: int
    middle: float
    deviation: float


NONE = OtherOwners(0, 0.0, 0.0)


def finding(samples_per_second: float | None, others: OtherOwners) -> Finding | None:
    """How far a time is from the median of other owners' times, in logarithms. None where nothing
    was measured."""
    if samples_per_second is None:
        return None
    if others.owners < OWNERS_FOR_OUTLIERS:
        owners = "owner is" if others.owners == 1 else "owners are"
        sentence = f"{others.owners} other {owners} too few to tell an outlier"
        return Finding(True, sentence, {"owners": others.owners}, checked=False)
    away = (math.log(1e9 / samples_per_second) - others.middle) / max(
        others.deviation, LEAST_DEVIATION
    )
    ratio = math.exp(others.middle) * samples_per_second / 1e9
    passed = abs(away) <= OUTLIER_DEVIATIONS
    return Finding(
        passed,
        f"{ratio:,.3g} times the median speed of {others.owners} other owners, "
        f"{abs(away):,.1f} deviations away{'' if passed or ratio > 1 else FAR_BELOW}",
        {"owners": others.owners, "ratio": ratio, "deviations": away},
    )


def verdicts(stored: Finding | None) -> tuple[CheckVerdict, ...]:
    return () if stored is None else (CheckVerdict.of(OUTLIER, effect, stored),)


def effect(stored: Finding) -> Effect:
    """The effect of a failure: the operator looks at a result far from all others."""
    near = 1 / QUARANTINED_RATIO <= stored.figures.get("ratio", 1) <= QUARANTINED_RATIO
    return "doubtful" if near else "quarantined"


def of_times(times_ns: Sequence[float]) -> OtherOwners:
    """Statistics of owners from all of their times: up to ``FEW`` by median and median absolute
    deviation (Iglewicz and Hoaglin 1993) with a factor for few, more by their quartiles."""
    if not times_ns:
        return NONE
    if len(times_ns) > FEW:
        ordered = sorted(times_ns)
        return of_quartiles(len(ordered), [ordered[len(ordered) * q // 4] for q in QUARTERS])
    logs = [math.log(time) for time in times_ns]
    middle = median(logs)
    to_sigma = MAD_TO_SIGMA * FEW_OWNERS.get(len(logs), 1.0)
    return OtherOwners(len(logs), middle, to_sigma * median(abs(log - middle) for log in logs))


def of_quartiles(owners: int, quartiles_ns: Sequence[float]) -> OtherOwners:
    """Statistics of owners from the quartiles of their times."""
    low, middle, high = map(math.log, quartiles_ns)
    return OtherOwners(owners, middle, (high - low) / QUARTILES_TO_SIGMA)


def others(connection: Connection, places: Iterable[Place]) -> dict[Place, OtherOwners]:
    """Statistics over all owners except the place's own, as their aggregates are now.

    A confirmed owner is compared with confirmed ones, an established one with established and
    confirmed ones, so that no crowd of strangers holds back its results. A new one is compared with
    the latter too if there are any, else with new ones.
    """
    return {place: _others(connection, place) for place in set(places)}


def _others(connection: Connection, place: Place) -> OtherOwners:
    ids = {"hardware": place.hardware, "owner": place.owner}
    counts = OwnerCounts.add_up((row.kind, row.number) for row in connection.execute(COUNTS, ids))
    kind = ESTABLISHED if place.kind == NEW and counts.older else place.kind
    count = sum(counts[: kind + 1])
    if count <= FEW:
        return of_times(connection.scalars(TIMES, {**ids, "kind": kind}).all())
    skips = {f"q{quarter}": count * quarter // 4 for quarter in QUARTERS}
    row = connection.execute(QUARTILES, {**ids, "kind": kind, **skips}).one()
    return of_quartiles(count, row)


# -- statements, each built once -------------------------------------------------------------------

_OTHERS = (TABLE.c.parent_id == bindparam("hardware"), TABLE.c.id != bindparam("owner"))
COUNTS = (
    select(TABLE.c.owner_kind.label("kind"), func.count().label("number"))
    .where(*_OTHERS)
    .group_by(TABLE.c.owner_kind)
)
TIMES: Any = (
    select(TABLE.c.ns_per_sample)
    .where(*_OTHERS, TABLE.c.owner_kind <= bindparam("kind", type_=Integer))
    .order_by(TABLE.c.ns_per_sample, TABLE.c.id)
)
QUARTILES = select(
    *(
        TIMES.limit(1).offset(bindparam(f"q{quarter}", type_=Integer)).scalar_subquery()
        for quarter in QUARTERS
    )
)
