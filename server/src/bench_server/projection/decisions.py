"""Effects of acts and key events on stored results and owners. Each returns what it touched."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, delete, select, update

from bench_protocol.payload import acts
from bench_protocol.payload.acts import Act, Revocation
from bench_protocol.signing import envelope

from ..checks import verdicts as check_verdicts
from ..db.lists import among
from ..db.tables import Owner, SigningKey, Withdrawn, table_of
from ..ranking.rows import RESULTS, subject_of
from . import eligibility as rules
from .entries import ActEntry, KeyEventEntry
from .touched import NOTHING, Touched, by_owner, by_results

MODERATION = {
    "hide": "hidden",
    "show": None,
    "flag": "flagged",
    "quarantine": "quarantined",
    "restore": "restored",
}
Which = ColumnElement[bool]


def key_event(connection: Connection, entry: KeyEventEntry) -> Touched:
    """A revocation ends the ranking of a key's results; other events change keys alone."""
    payload = envelope.read(entry.envelope).payload
    if acts.event_kind(payload) != "revoke":
        return NOTHING
    return settle(connection, RESULTS.c.key_id == Revocation.parse(payload).key_id)


def act(connection: Connection, entry: ActEntry) -> Touched:
    """Apply an act; one without an envelope withdrew a result."""
    if entry.envelope is None:
        return _withdraw(connection, entry.log_index)
    made = Act.parse(envelope.read(entry.envelope).payload)
    if made.act in MODERATION:
        return _moderate(connection, made)
    if made.act == "assign":
        return _assign(connection, made)
    if made.act in acts.ABOUT_OWNERS:
        return _about_owner(connection, made)
    return NOTHING


def settle(connection: Connection, which: Which) -> Touched:
    """Decide again whether stored results are ranked, and their trust level up to 3."""
    rows = _rows(connection, which)
    if not rows:
        return NOTHING
    key_ids = sorted({row.key_id for row in rows})
    revocations = {
        row.key_id: rules.Revocation(row.compromised_since, row.revoked_reason)
        for row in connection.execute(REVOCATIONS, {"ids": key_ids})
    }
    connection.execute(SETTLE, [_settled(row, revocations[row.key_id]) for row in rows])
    return by_results(rows)


def _moderate(connection: Connection, made: Act) -> Touched:
    moderated = RESULTS.c.submission_id == made.result
    values = {"moderation": MODERATION[made.act], "moderation_reason": made.reason}
    connection.execute(update(RESULTS).where(moderated).values(values))
    return settle(connection, moderated)


def _assign(connection: Connection, made: Act) -> Touched:
    of_key = RESULTS.c.key_id == made.key
    before = by_results(_rows(connection, of_key))
    owner = select(_KEYS.c.owner).where(_KEYS.c.key_id == made.key).scalar_subquery()
    connection.execute(update(RESULTS).where(of_key).values(owner=owner))
    return before | settle(connection, of_key)


def _about_owner(connection: Connection, made: Act) -> Touched:
    located = made.act == "locate"
    values = {"area": made.area} if located else {"confirmed": made.act == "confirm"}
    connection.execute(update(_OWNERS).where(_OWNERS.c.label == made.owner).values(values))
    return by_owner(connection, str(made.owner))


def _withdraw(connection: Connection, act_index: int) -> Touched:
    of_act = select(_WITHDRAWN.c.id).where(_WITHDRAWN.c.act_index == act_index)
    gone = RESULTS.c.submission_id.in_(of_act)
    rows = _rows(connection, gone)
    connection.execute(delete(RESULTS).where(gone))
    return by_results(rows)


def _rows(connection: Connection, which: Which) -> Sequence[Row[Any]]:
    return connection.execute(select(RESULTS).where(which)).all()


def _settled(row: Row[Any], revocation: rules.Revocation) -> dict[str, Any]:
    eligibility = rules.eligibility(
        check_verdicts.from_text(row.verdicts),
        row.log_index,
        failure=row.unranked_reason if row.failure_kind is not None else None,
        moderation=rules.Moderation(row.moderation, row.moderation_reason),
        revocation=revocation,
    )
    run = subject_of(row).id
    return {"of": row.submission_id, **eligibility._asdict(), "run_aggregate": run}


# Statements, each built once.
_KEYS, _OWNERS, _WITHDRAWN = map(table_of, (SigningKey, Owner, Withdrawn))
SETTLE = update(RESULTS).where(RESULTS.c.submission_id == bindparam("of"))
REVOCATIONS = select(_KEYS.c.key_id, _KEYS.c.compromised_since, _KEYS.c.revoked_reason).where(
    among(_KEYS.c.key_id, "ids")
)
