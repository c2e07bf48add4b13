"""Whether a kept result counts, and how far it can be trusted: computed, never sent.

Both follow from what its checks found, what was said of it, and its key; :mod:`.checks` says what
each check's failing does.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Row
from sqlmodel import Session, col, select

from . import findings, standings
from .findings import Verdict
from .rank import Setup
from .standing_rows import lineage
from .statements import among
from .tables import Measurement, NewRow, Owner, SigningKey, Standing

Judged = TypeVar("Judged", Measurement, NewRow)
# Two figures within this share of each other are the same.
REPRODUCED_WITHIN = 0.10
OWNERS_TO_REPRODUCE = 2
SAME_SETUP = ("hardware_slug", "workload_digest", *Setup._fields)
# Statements of every ingest, put together once.
CONFIRMED = select(col(Owner.label)).where(col(Owner.confirmed))
PARENTS = select(col(Standing.parent_id)).where(among(Standing.id, "ids"))
MODERATED = {
    "flagged": "flagged by the operator",
    "quarantined": "held back by the operator for a look",
    "hidden": "hidden by whoever sent it",
}


def judge(row: Measurement | NewRow, key: SigningKey | Row[Any], found: Sequence[Verdict]) -> None:
    """Set ``rankable``, ``unranked_reason`` and ``trust_level`` (1 to 3) of a row, from what its
    checks found."""
    row.unranked_reason = _unranked_reason(row, key, found)
    row.rankable = row.unranked_reason is None
    row.trust_level = _level(row, found)


def reproduce(session: Session, row: Measurement | NewRow) -> list[Measurement]:
    """Raise to level 4 what two or more confirmed owners measured within 10 % on this hardware in
    this set-up, and lower what no longer is.

    Returns:
        The rows whose level changed.
    """
    group = session.exec(
        select(Measurement)
        .where(*_same_setup(row))
        .where(col(Measurement.rankable), col(Measurement.trust_level) >= 3)
    ).all()
    confirmed = _confirmed(session, {member.owner for member in group})
    times: defaultdict[str, list[float]] = defaultdict(list)
    for member in group:
        if member.owner in confirmed and member.ns_per_sample:
            times[member.owner].append(member.ns_per_sample)
    figures = [median(own) for own in times.values()]
    changed = []
    for member in group:
        agreeing = sum(_agrees(member.ns_per_sample, figure) for figure in figures)
        level = 4 if agreeing >= OWNERS_TO_REPRODUCE else 3
        if member.trust_level != level:
            member.trust_level = level
            changed.append(member)
    return changed


def settle(session: Session, rows: Sequence[Measurement]) -> None:
    """Judge kept results anew, after something was said of them or of their keys."""
    changed = list(rows)
    for row in rows:
        judge(row, session.get_one(SigningKey, row.key_id), findings.from_text(row.verdicts))
        session.flush()
        changed += reproduce(session, row)
    standings.refresh(session, changed)


def settle_key(session: Session, key: SigningKey) -> None:
    """Judge all results of a key anew."""
    settle(session, session.exec(select(Measurement).where(Measurement.key_id == key.key_id)).all())


def settle_without(session: Session, row: Measurement) -> None:
    """Judge anew what a result that counts no more stood beside."""
    session.flush()
    standings.refresh(session, [row, *reproduce(session, row)])


def may_be_reproduced(session: Session, rows: Iterable[Judged]) -> list[Judged]:
    """Those of level 3 and more where enough confirmed owners have a figure for
    :func:`reproduce` to find any. Those who are confirmed are few, so their figures are looked for,
    not the figures' owners."""
    trusted = [row for row in rows if row.trust_level >= 3]
    connection = session.connection()
    confirmed = connection.scalars(CONFIRMED).all() if trusted else []
    if len(confirmed) < OWNERS_TO_REPRODUCE:
        return []
    places = dict(lineage(row)["hardware"] for row in trusted)
    ids = [replace(place, owner=label).id for place in places.values() for label in confirmed]
    found = Counter(connection.scalars(PARENTS, {"ids": ids}))
    return [row for row in trusted if found[lineage(row)["hardware"].id] >= OWNERS_TO_REPRODUCE]


def _unranked_reason(
    row: Measurement | NewRow, key: SigningKey | Row[Any], found: Sequence[Verdict]
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
            return f"held back for a look: {verdict.sentence}"
    return None


def _level(row: Measurement | NewRow, found: Sequence[Verdict]) -> int:
    failed = {verdict.effect for verdict in found if not verdict.passed}
    if not found or "stale" in failed:
        return 1
    return 2 if failed or row.failure_kind is not None else 3


def _same_setup(row: Measurement | NewRow) -> list[ColumnElement[bool]]:
    """Rows of the same hardware in the same cell, whichever device of its kind it was."""
    return [getattr(Measurement, name) == getattr(row, name) for name in SAME_SETUP]


def _agrees(one: float | None, other: float) -> bool:
    return one is not None and abs(one - other) <= REPRODUCED_WITHIN * other


def _confirmed(session: Session, labels: Iterable[str]) -> set[str]:
    found = session.exec(
        select(Owner.label).where(col(Owner.label).in_(labels), col(Owner.confirmed))
    )
    return set(found)
