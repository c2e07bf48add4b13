"""Takes results in: open -> parse -> derive -> log and save.

The bytes that were received are verified and kept, and parsed after; posting again changes
nothing. Signatures are checked before the writing transaction begins, so that a flood of bad
envelopes does not hold up the good ones. Results that come together are saved in one transaction
and share one checkpoint of the log.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import insert
from sqlmodel import Session, and_, col, or_, select

from bench_protocol import envelope, statement
from bench_protocol.envelope import Envelope
from bench_protocol.errors import InvalidEnvelope, ProtocolError
from bench_protocol.log import Receipt
from bench_protocol.result import Result

from . import challenges, derive, judge, log, registry, standings
from .attributes import environment_row
from .authority import Authority
from .db import Store
from .problems import Conflict, Gone
from .tables import EnvironmentRow, Measurement, SigningKey, Submission, Withdrawn


@dataclass(frozen=True)
class Accepted:
    """A kept result. ``created``: it is new; False where this payload was kept before."""

    submission: Submission
    measurement: Measurement
    receipt: Receipt
    created: bool


Spend = Callable[[str], None]


def _unlimited(_key_id: str) -> None:
    """No limit for any key."""


def accept(
    raw: bytes, store: Store, authority: Authority, now: datetime, spend: Spend = _unlimited
) -> Accepted:
    """Verify, keep and log one envelope.

    Args:
        raw: the envelope as received, at most 2 MiB.
        now: when it was received.
        spend: counts a result of a key, whose signature was verified; it may refuse it.

    Raises:
        ProtocolError: one of its kinds, naming what is wrong with the envelope or the result.
        Conflict: another payload is kept for this repeat.
    """
    (answer,) = accept_all((raw,), store, authority, now, spend)
    if isinstance(answer, ProtocolError):
        raise answer
    return answer


def accept_all(
    raws: Sequence[bytes],
    store: Store,
    authority: Authority,
    now: datetime,
    spend: Spend = _unlimited,
) -> list[Accepted | ProtocolError]:
    """:func:`accept` each of several envelopes; a bad one does not spoil the others."""
    answers: list[Arrived | ProtocolError] = []
    with store.reading() as session:
        for raw in raws:
            try:
                arrived = _opened(session, raw, now)
                spend(arrived.submission.key_id)
                answers.append(arrived)
            except ProtocolError as error:
                answers.append(error)
    if not any(isinstance(answer, Arrived) for answer in answers):
        return [answer for answer in answers if isinstance(answer, ProtocolError)]
    with store.writing() as session:
        log.take_turn(session)
        return _save_all(session, authority, answers, now)


@dataclass(frozen=True)
class Arrived:
    """A verified result on its way into the database."""

    envelope: Envelope
    result: Result
    submission: Submission


class Kept(NamedTuple):
    """The rows of a result, and whether they are new."""

    submission: Submission
    measurement: Measurement
    created: bool


def derived(
    session: Session, origin: str, submission: Submission, result: Result, log_index: int
) -> Measurement:
    """The measurement row of a result whose key is enrolled, checked and judged.

    It depends on what the database holds of earlier log entries, so replay them in their order.
    """
    key = session.get_one(SigningKey, submission.key_id)
    arrival, challenge = challenges.arrival(session, result, origin, submission.received_at)
    row = derive.measurement_row(submission, result, key, log_index)
    if challenge is not None:
        row.challenge_id = challenge.id
        challenge.used = True
    derive.check(row, result, replace(arrival, peers_ns=judge.peers_ns(session, row)))
    judge.judge(row, key)
    return row


def save_row(session: Session, row: Measurement, result: Result) -> None:
    """Add a measurement row, its environment where it is new, and take it into the standings."""
    session.add(row)
    if session.get(EnvironmentRow, row.environment_id) is None:
        session.execute(insert(EnvironmentRow).values(environment_row(result).model_dump()))
    session.flush()
    standings.add(session, [row])
    if row.trust_level >= 3 and judge.may_be_reproduced(session, row):
        standings.refresh(session, judge.reproduce(session, row))


def _opened(session: Session, raw: bytes, now: datetime) -> Arrived:
    opened = envelope.read(raw)
    if len(opened.signatures) != 1:
        raise InvalidEnvelope("a result has exactly one signature", field="signatures")
    payload = envelope.open_envelope(
        opened, statement.RESULT_PAYLOAD_TYPE, registry.find_key(session)
    )
    result = statement.parse_result(payload)
    statement.require_author(result.agent.key_id, opened.signatures[0].key_id)
    submission = Submission(
        id=secrets.token_hex(8),
        payload=opened.payload,
        payload_sha256=opened.payload_sha256,
        payload_type=opened.payload_type,
        signature=opened.signatures[0].value,
        key_id=opened.signatures[0].key_id,
        received_at=now,
    )
    return Arrived(opened, result, submission)


def _save_all(
    session: Session,
    authority: Authority,
    answers: Sequence[Arrived | ProtocolError],
    now: datetime,
) -> list[Accepted | ProtocolError]:
    first = log.size(session)
    new: list[log.Leaf] = []
    kept: list[Kept | ProtocolError] = []
    for answer in answers:
        if isinstance(answer, ProtocolError):
            kept.append(answer)
            continue
        try:
            found = _kept(session, answer)
            if found is None:
                row = _save(session, authority, answer, first + len(new))
                new.append(log.Leaf("result", answer.envelope, row.submission_id))
                found = Kept(answer.submission, row, True)
            kept.append(found)
        except ProtocolError as error:
            kept.append(error)
    if new:
        log.append(session, authority, new, now)
    receipts = log.receipts_of_results(
        session, [answer.submission.id for answer in kept if isinstance(answer, Kept)]
    )
    return [
        answer
        if isinstance(answer, ProtocolError)
        else Accepted(
            answer.submission, answer.measurement, receipts[answer.submission.id], answer.created
        )
        for answer in kept
    ]


def _save(session: Session, authority: Authority, arrived: Arrived, log_index: int) -> Measurement:
    registry.require_active(session, arrived.submission.key_id)
    row = derived(session, authority.origin, arrived.submission, arrived.result, log_index)
    _refuse_second(session, row)
    session.add(arrived.submission)
    session.flush()
    save_row(session, row, arrived.result)
    return row


def _kept(session: Session, arrived: Arrived) -> Kept | None:
    """The rows that are kept for this payload, or None.

    Raises:
        Gone: it was withdrawn.
    """
    digest = arrived.submission.payload_sha256
    found = session.exec(
        select(Submission, Measurement)
        .where(Submission.payload_sha256 == digest)
        .where(Measurement.submission_id == Submission.id)
    ).first()
    if found is not None:
        return Kept(*found, False)
    if session.exec(select(Withdrawn).where(Withdrawn.payload_sha256 == digest)).first():
        raise Gone("this result was withdrawn", field="payload", mend="measure again")
    return None


def _refuse_second(session: Session, row: Measurement) -> None:
    """One payload for a repeat: what a second one would mean, nobody could say.

    Raises:
        Conflict: another payload is kept for it.
    """
    places = [and_(col(Measurement.key_id) == row.key_id, col(Measurement.run_id) == row.run_id)]
    if row.challenge_id is not None:
        places.append(col(Measurement.challenge_id) == row.challenge_id)
    with session.no_autoflush:
        found = session.exec(
            select(Measurement)
            .where(Measurement.cell_digest == row.cell_digest)
            .where(Measurement.repeat == row.repeat)
            .where(or_(*places))
        ).first()
    if found is not None:
        which = f"run {row.run_id}" if found.run_id == row.run_id else "this challenge"
        raise Conflict(
            f"result {found.submission_id} is kept for repeat {row.repeat} of this cell in "
            f"{which}, and its payload differs",
            field="predicate.repeat",
            mend="count a new measurement as a new repeat or a new run",
        )
