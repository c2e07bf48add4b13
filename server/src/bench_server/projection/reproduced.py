"""Level 4: results that other confirmed owners reproduced.

A result of level 3 is compared with the times of the confirmed owners except its own, in the same
set-up on the same hardware (:mod:`..ranking.reproduction`). An owner's time is the median of their
results of level 3 and above; the disturbed ones are not in it while others are. The spread between
owners is that of the hardware and framework: its rows (``owner_spread``, one a set-up) follow from
the results of their set-up, and where it changes, the levels of all of its set-ups are computed
again. So the levels follow from the present results and owners alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from statistics import median_high
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, bindparam, delete, func, select, update

from bench_protocol.trust.asks import HardwareSetup

from ..db.lists import among
from ..db.tables import OwnerSpread, SigningKey, table_of
from ..db.upsert import upsert
from ..ranking import reproduction
from ..ranking.figures import Setup, Subject
from ..ranking.medians import counting, scaled_log
from ..ranking.owners import CONFIRMED_LABELS, TRUSTED
from ..ranking.reproduction import Pairs, Reproduction
from ..ranking.rows import RESULTS, SUBJECT_COLUMNS, TABLE, lineage, subject_of

# Fewer confirmed owners in a set-up have no spread, and reproduce nothing.
OWNERS_TO_REPRODUCE = 2


class Group(NamedTuple):
    """One framework on one hardware: its set-ups share the spread between owners."""

    hardware_slug: str
    framework: str

    @classmethod
    def of(cls, setup: HardwareSetup) -> "Group":
        return cls(setup.hardware_slug, setup.framework)


def setup_of(subject: Subject) -> HardwareSetup:
    """The set-up and hardware of a result or an aggregate."""
    return HardwareSetup(subject.hardware_slug, subject.workload_digest, *subject.setup)


def hardware_of_owner(connection: Connection, label: str) -> list[Subject]:
    """The hardware, each in one set-up, of which an owner has ranked results."""
    rows = connection.execute(HARDWARE_OF_OWNER, {"owner": label})
    return [
        Subject(row.hardware, row.hardware_slug, row.workload, row.workload_digest, Setup.of(row))
        for row in rows
    ]


def reproducible(
    connection: Connection, trusted: Sequence[Subject], confirmed: Set[str]
) -> set[HardwareSetup]:
    """The set-ups of new trusted results in which enough confirmed owners have a figure."""
    of_setup: dict[HardwareSetup, dict[str, str]] = {}
    for subject in trusted:
        of_owner = lineage(subject)["owner"]
        ids = of_setup.setdefault(setup_of(subject), {})
        ids[of_owner.owner] = of_owner.id
        for label in confirmed:
            ids.setdefault(label, of_owner._replace(owner=label).id)
    wanted = {id for ids in of_setup.values() for id in ids.values()}
    existing = set(connection.scalars(EXISTING, {"ids": sorted(wanted)}))
    existing |= {lineage(subject)["owner"].id for subject in trusted}
    return {
        setup
        for setup, ids in of_setup.items()
        if sum(ids[label] in existing for label in confirmed if label in ids) >= OWNERS_TO_REPRODUCE
    }


def update_levels(
    connection: Connection, setups: Iterable[HardwareSetup], confirmed: Set[str]
) -> list[Subject]:
    """Update the spreads between owners in these set-ups, then raise results to level 4 or lower
    them to level 3, also where a shared spread changed; returns the subjects of those."""
    touched = set(setups)
    groups = sorted(set(map(Group.of, touched)))
    before = [tau(connection, group) for group in groups]
    for setup in sorted(touched):
        _update_spread(connection, setup)
    taus = {group: tau(connection, group) for group in groups}
    for group, old in zip(groups, before, strict=True):
        if taus[group] != old:
            touched.update(_setups_of(connection, group))
    changes = [
        change
        for setup in sorted(touched)
        for change in _changes(
            connection.execute(MEMBERS, setup._asdict()).all(), confirmed, taus[Group.of(setup)]
        )
    ]
    if changes:
        levels = [{"of": row.submission_id, "trust_level": level} for row, level in changes]
        connection.execute(SET_LEVEL, levels)
    return [subject_of(row) for row, _ in changes]


def tau(connection: Connection, group: Group) -> float:
    """The spread between owners of a framework on a hardware, in log times."""
    row = connection.execute(SPREAD, group._asdict()).one()
    return reproduction.tau_of(Pairs(*(int(value or 0) for value in row)))


def of_result(connection: Connection, result: Any) -> Reproduction | None:
    """The comparison behind a result's level; None unless it is ranked and has reached level 3."""
    if not result.rankable or result.trust_level < 3:
        return None
    values = {name: getattr(result, name) for name in HardwareSetup._fields}
    times = _owner_times(connection.execute(CONFIRMED_MEMBERS, values).all())
    spread = tau(connection, Group(result.hardware_slug, result.framework))
    return _judged(result, times, spread)


def _update_spread(connection: Connection, setup: HardwareSetup) -> None:
    times = _owner_times(connection.execute(CONFIRMED_MEMBERS, setup._asdict()).all())
    # The id of the hardware's aggregate.
    id = Subject("", setup.hardware_slug, "", setup.workload_digest, Setup.of(setup)).id
    if len(times) < OWNERS_TO_REPRODUCE:
        connection.execute(DELETE, {"of": id})
        return
    pairs = reproduction.pairs_of(list(times.values()))
    row = {"owners": len(times), "squares": pairs.squares, "degrees": pairs.degrees}
    upsert(connection, _SPREADS, [{"id": id, **setup._asdict(), **row}])


def _setups_of(connection: Connection, group: Group) -> Iterator[HardwareSetup]:
    for row in connection.execute(SETUPS, group._asdict()):
        yield HardwareSetup(*row)


def _changes(
    members: Sequence[Row[Any]], confirmed: Set[str], spread: float
) -> Iterator[tuple[Row[Any], int]]:
    """The results of one set-up whose level is not the stored one, with the right level."""
    times = _owner_times([member for member in members if member.owner in confirmed])
    for member in members:
        level = 4 if _judged(member, times, spread).verdict == "reproduced" else 3
        if member.trust_level != level:
            yield member, level


def _owner_times(members: Iterable[Row[Any]]) -> dict[str, int]:
    of_owners: defaultdict[str, list[Row[Any]]] = defaultdict(list)
    for member in members:
        of_owners[member.owner].append(member)
    return {
        owner: scaled_log(median_high(member.ns_per_sample for member in counting(results)))
        for owner, results in of_owners.items()
    }


def _judged(result: Any, times: Mapping[str, int], spread: float) -> Reproduction:
    others = [time for owner, time in times.items() if owner != result.owner]
    return reproduction.judge(scaled_log(result.ns_per_sample), others, spread)


# Statements, built once.
_KEYS, _SPREADS = map(table_of, (SigningKey, OwnerSpread))
MEMBERS = select(
    *(RESULTS.c[name] for name in ("submission_id", "ns_per_sample", "trust_level", "disturbed")),
    *(RESULTS.c[name] for name in SUBJECT_COLUMNS),
).where(*(RESULTS.c[name] == bindparam(name) for name in HardwareSetup._fields), TRUSTED)
CONFIRMED_MEMBERS = select(
    *(RESULTS.c[name] for name in ("owner", "ns_per_sample", "disturbed"))
).where(
    *(RESULTS.c[name] == bindparam(name) for name in HardwareSetup._fields),
    TRUSTED,
    RESULTS.c.owner.in_(CONFIRMED_LABELS),
)
HARDWARE_OF_OWNER = (
    select(*(RESULTS.c[name] for name in ("hardware", "workload", *HardwareSetup._fields)))
    .where(
        RESULTS.c.key_id.in_(select(_KEYS.c.key_id).where(_KEYS.c.owner == bindparam("owner"))),
        RESULTS.c.rankable,
    )
    .distinct()
)
SET_LEVEL = update(RESULTS).where(RESULTS.c.submission_id == bindparam("of"))
DELETE = delete(_SPREADS).where(_SPREADS.c.id == bindparam("of"))
_IN_GROUP = [_SPREADS.c[name] == bindparam(name) for name in Group._fields]
SPREAD = select(
    func.sum(_SPREADS.c.squares), func.sum(_SPREADS.c.degrees), func.max(_SPREADS.c.degrees)
).where(*_IN_GROUP)
SETUPS = select(*(_SPREADS.c[name] for name in HardwareSetup._fields)).where(*_IN_GROUP)
EXISTING = select(TABLE.c.id).where(among(TABLE.c.id, "ids"))
