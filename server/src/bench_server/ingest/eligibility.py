"""Eligibility: whether a stored result is ranked, and its trust level. Computed, never sent.

Both follow from the findings of its checks, its moderation, and its key. :mod:`.result_checks`
defines the effect of each failed check.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from statistics import median
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Row, bindparam, select, update
from sqlmodel import Session, col

from ..db.bulk import among
from ..db.tables import Aggregate, Measurement, NewRow, Owner, SigningKey
from ..ranking import aggregates
from ..ranking.figures import Setup
from ..ranking.rows import RESULTS, lineage
from . import verdicts
from .verdicts import CheckVerdict

Judged = TypeVar("Judged", Measurement, NewRow)
# Two figures reproduce each other if they differ by at most this share.
REPRODUCED_WITHIN = 0.10
OWNERS_TO_REPRODUCE = 2
SAME_SETUP = ("hardware_slug", "workload_digest", *Setup._fields)
# Statements, built once.
CONFIRMED = select(col(Owner.label)).where(col(Owner.confirmed))
THERE = select(col(Aggregate.id)).where(among(Aggregate.id, "ids"))
TRUSTED = RESULTS.c.rankable & (RESULTS.c.trust_level >= 3)
MEMBERS = select(
    *(RESULTS.c[name] for name in ("submission_id", "owner", "ns_per_sample", "trust_level")),
    *(RESULTS.c[name] for name in ("machine_standing", "environment_standing")),
).where(*(RESULTS.c[name] == bindparam(name) for name in SAME_SETUP), TRUSTED)
SETUPS_OF_OWNER = (
    select(*(RESULTS.c[name] for name in SAME_SETUP))
    .where(
        RESULTS.c.key_id.in_(
            select(col(SigningKey.key_id)).where(col(SigningKey.owner) == bindparam("owner"))
        ),
        TRUSTED,
    )
    .distinct()
)
# This also updates results that the session has loaded.
SET_LEVEL = {
    level: update(Measurement)
    .where(among(Measurement.submission_id, "ids"))
    .values(trust_level=level)
    .execution_options(synchronize_session="fetch")
    for level in (3, 4)
}
MODERATED = {
    "flagged": "flagged by the operator",
    "quarantined": "held back by the operator for review",
    "hidden": "hidden by its sender",
}


class LevelChange(NamedTuple):
    """A result whose trust level changed, the ids of its aggregates, and its new level."""

    submission_id: str
    machine_standing: str
    environment_standing: str
    trust_level: int


def judge(
    row: Measurement | NewRow, key: SigningKey | Row[Any], found: Sequence[CheckVerdict]
) -> None:
    """Set ``rankable``, ``unranked_reason`` and ``trust_level`` (1 to 3) of a row from the findings
    of its checks."""
    row.unranked_reason = _unranked_reason(row, key, found)
    row.rankable = row.unranked_reason is None
    row.trust_level = _level(row, found)


def reproduce(session: Session, rows: Iterable[Any]) -> list[LevelChange]:
    """Raise to level 4 the results that two or more confirmed owners measured within 10 %, and
    lower those that no longer qualify, in the set-ups of these rows. Each set-up is read once.

    Args:
        rows: anything with the columns ``SAME_SETUP``.
    """
    session.flush()
    connection = session.connection()
    confirmed = set(connection.scalars(CONFIRMED))
    setups = {tuple(getattr(row, name) for name in SAME_SETUP) for row in rows}
    changes: list[LevelChange] = []
    for setup in setups:
        members = connection.execute(MEMBERS, dict(zip(SAME_SETUP, setup, strict=True))).all()
        changes += _level_changes(members, confirmed)
    for level, statement in SET_LEVEL.items():
        if ids := [change.submission_id for change in changes if change.trust_level == level]:
            session.execute(statement, {"ids": ids})
    return changes


def settle(session: Session, rows: Sequence[Measurement]) -> None:
    """Judge stored results again, after a moderation event or a change of their keys."""
    for row in rows:
        judge(row, session.get_one(SigningKey, row.key_id), verdicts.from_text(row.verdicts))
    aggregates.refresh(session, [*rows, *reproduce(session, rows)])


def settle_key(session: Session, key: SigningKey) -> None:
    """Judge all results of a key again."""
    of_key = select(Measurement).where(col(Measurement.key_id) == key.key_id)
    settle(session, session.scalars(of_key).all())


def settle_owner(session: Session, label: str) -> None:
    """Update the trust levels in an owner's set-ups, after the owner was confirmed or doubted."""
    session.flush()
    setups = session.connection().execute(SETUPS_OF_OWNER, {"owner": label}).all()
    aggregates.refresh(session, reproduce(session, setups))


def settle_without(session: Session, row: Measurement) -> None:
    """Update the trust levels in the set-up of a result that no longer counts."""
    aggregates.refresh(session, [row, *reproduce(session, [row])])


def may_be_reproduced(session: Session, rows: Iterable[Judged]) -> list[Judged]:
    """The results of level 3 and more in set-ups where enough confirmed owners have a figure.
    Confirmed owners are few, so this looks up their figures rather than each figure's owner."""
    trusted = [row for row in rows if row.trust_level >= 3 and row.rankable]
    connection = session.connection()
    confirmed = connection.scalars(CONFIRMED).all() if trusted else []
    if len(confirmed) < OWNERS_TO_REPRODUCE:
        return []
    places = dict(lineage(row)["hardware"] for row in trusted)
    ids = {id: {replace(p, owner=label).id for label in confirmed} for id, p in places.items()}
    there = set(connection.scalars(THERE, {"ids": set[str]().union(*ids.values())}))
    there.update(lineage(row)["owner"].id for row in trusted)
    enough = {id for id, owners in ids.items() if len(owners & there) >= OWNERS_TO_REPRODUCE}
    return [row for row in trusted if lineage(row)["hardware"].id in enough]


def _unranked_reason(
    row: Measurement | NewRow, key: SigningKey | Row[Any], found: Sequence[CheckVerdict]
) -> str | None:
    if row.failure_kind is not None:
        return row.unranked_reason
    if row.moderation in MODERATED:
        said = f": {row.moderation_reason}" if row.moderation_reason else ""
        return MODERATED[row.moderation] + said
    if key.compromised_since is not None and row.log_index >= key.compromised_since:
        return (
            f"its key was revoked ({key.revoked_reason}), and what was logged from entry "
            f"{key.compromised_since} on does not count"
        )
    failed = [verdict for verdict in found if not verdict.passed]
    for verdict in failed:
        if verdict.effect == "unranked":
            return verdict.sentence
    for verdict in failed:
        if verdict.effect == "quarantined" and row.moderation != "restored":
            return f"held back for review: {verdict.sentence}"
    return None


def _level(row: Measurement | NewRow, found: Sequence[CheckVerdict]) -> int:
    failed = {verdict.effect for verdict in found if not verdict.passed}
    if not found or "stale" in failed:
        return 1
    return 2 if failed or row.failure_kind is not None else 3


def _level_changes(members: Sequence[Row[Any]], confirmed: Set[str]) -> Iterator[LevelChange]:
    """Levels 3 and 4 of all results of one set-up, where they differ from the stored ones."""
    times: defaultdict[str, list[float]] = defaultdict(list)
    for member in members:
        if member.owner in confirmed:
            times[member.owner].append(member.ns_per_sample)
    figures = [median(own) for own in times.values()]
    for member in members:
        agreeing = sum(_agrees(member.ns_per_sample, figure) for figure in figures)
        level = 4 if agreeing >= OWNERS_TO_REPRODUCE else 3
        if member.trust_level != level:
            standing_ids = member.machine_standing, member.environment_standing
            yield LevelChange(member.submission_id, *standing_ids, level)


def _agrees(one: float, other: float) -> bool:
    return abs(one - other) <= REPRODUCED_WITHIN * other
