"""Level 4: results that most confirmed owners measured alike.

A result of level 3 is reproduced if two or more confirmed owners, and more than half of them, have
a median within 10 % of it, in the same set-up on the same hardware. An owner's disturbed results
are not in their median while others are. With "two or more" alone a
result far from the middle would find two owners near it as soon as there are many. The levels of a
set-up follow from its present results and owners alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from statistics import median_high
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, bindparam, select, update

from ..db.tables import SigningKey, table_of
from ..ranking.figures import Setup, Subject, at_level
from ..ranking.medians import counting
from ..ranking.rows import RESULTS, SUBJECT_COLUMNS, subject_of

# Two figures reproduce each other if they differ by at most this share.
REPRODUCED_WITHIN = 0.10
OWNERS_TO_REPRODUCE = 2
SAME_SETUP = ("hardware_slug", "workload_digest", *Setup._fields)


class HardwareSetup(NamedTuple):
    """One workload in one set-up on one hardware: the values of ``SAME_SETUP``."""

    hardware_slug: str
    workload_digest: str
    setup: Setup

    @classmethod
    def of(cls, subject: Subject) -> "HardwareSetup":
        return cls(subject.hardware_slug, subject.workload_digest, subject.setup)

    @property
    def columns(self) -> dict[str, Any]:
        """The values by column."""
        values = (self.hardware_slug, self.workload_digest, *self.setup)
        return dict(zip(SAME_SETUP, values, strict=True))


def hardware_of_owner(connection: Connection, label: str) -> list[Subject]:
    """The hardware, each in one set-up, of which an owner has ranked results."""
    rows = connection.execute(HARDWARE_OF_OWNER, {"owner": label})
    return [at_level("hardware", subject_of({**UNSET, **row._mapping})) for row in rows]


def update_levels(
    connection: Connection, setups: Iterable[HardwareSetup], confirmed: Set[str]
) -> list[Subject]:
    """Raise results to level 4 or lower them to level 3, in these set-ups.

    Returns:
        The subjects of the results whose level changed.
    """
    changes = [
        change
        for setup in setups
        for change in _changes(connection.execute(MEMBERS, setup.columns).all(), confirmed)
    ]
    if changes:
        levels = [{"of": row.submission_id, "trust_level": level} for row, level in changes]
        connection.execute(SET_LEVEL, levels)
    return [subject_of(dict(row._mapping)) for row, _ in changes]


def _changes(members: Sequence[Row[Any]], confirmed: Set[str]) -> Iterator[tuple[Row[Any], int]]:
    """The results of one set-up whose level is not the stored one, with the right level."""
    owners: defaultdict[str, list[Row[Any]]] = defaultdict(list)
    for member in members:
        if member.owner in confirmed:
            owners[member.owner].append(member)
    medians = [
        median_high(member.ns_per_sample for member in counting(of_owner))
        for of_owner in owners.values()
    ]
    for member in members:
        level = 4 if reproduced(member.ns_per_sample, medians) else 3
        if member.trust_level != level:
            yield member, level


def reproduced(time: float, medians: Sequence[float]) -> bool:
    """Whether two or more confirmed owners, and more than half of them, measured about this time.

    Args:
        medians: the confirmed owners' median times, in the same unit.
    """
    agreeing = sum(_agrees(time, middle) for middle in medians)
    return agreeing >= OWNERS_TO_REPRODUCE and 2 * agreeing > len(medians)


def _agrees(time: float, other: float) -> bool:
    return abs(time - other) <= REPRODUCED_WITHIN * other


# Statements, built once.
_KEYS = table_of(SigningKey)
UNSET = dict.fromkeys(SUBJECT_COLUMNS, "")
TRUSTED = RESULTS.c.rankable & (RESULTS.c.trust_level >= 3)
MEMBERS = select(
    *(RESULTS.c[name] for name in ("submission_id", "ns_per_sample", "trust_level", "disturbed")),
    *(RESULTS.c[name] for name in SUBJECT_COLUMNS),
).where(*(RESULTS.c[name] == bindparam(name) for name in SAME_SETUP), TRUSTED)
HARDWARE_OF_OWNER = (
    select(*(RESULTS.c[name] for name in ("hardware", "workload", *SAME_SETUP)))
    .where(
        RESULTS.c.key_id.in_(select(_KEYS.c.key_id).where(_KEYS.c.owner == bindparam("owner"))),
        RESULTS.c.rankable,
    )
    .distinct()
)
SET_LEVEL = update(RESULTS).where(RESULTS.c.submission_id == bindparam("of"))
