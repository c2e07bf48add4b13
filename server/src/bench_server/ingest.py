"""Takes a result in: open -> parse -> derive -> save.

The bytes that were received are verified and kept, and parsed after; posting again changes
nothing. The signature is checked before the writing transaction begins, so that a flood of bad
envelopes does not hold up the good ones.
"""

import secrets
from collections.abc import Callable
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import make_transient
from sqlmodel import Session, select

from bench_protocol import envelope, statement
from bench_protocol.envelope import Envelope
from bench_protocol.errors import InvalidEnvelope, UnknownKey

from . import standings
from .attributes import environment_row
from .db import Store
from .derive import measurement_row
from .problems import Conflict
from .tables import EnvironmentRow, Measurement, SigningKey, Submission


def accept(raw: bytes, store: Store, now: datetime) -> tuple[Submission, Measurement, bool]:
    """Verify and keep one envelope.

    Args:
        raw: the envelope as received, at most 2 MiB.
        now: when it was received.

    Returns:
        The rows, and whether they are new; False where this payload was kept before.

    Raises:
        ProtocolError: one of its kinds, naming what is wrong with the envelope or the result.
        Conflict: another payload is kept for this key, run, cell and repeat.
    """
    opened = envelope.read(raw)
    if len(opened.signatures) != 1:
        raise InvalidEnvelope("a result has exactly one signature", field="signatures")
    with store.reading() as session:
        payload = envelope.open_envelope(opened, statement.RESULT_PAYLOAD_TYPE, _enrolled(session))
    result = statement.parse_result(payload)
    statement.require_author(result.agent.key_id, opened.signatures[0].key_id)
    submission = _submission(opened, now)
    environment = environment_row(result)
    measurement = measurement_row(submission, result, submission.key_id)
    for last in (False, False, True):
        try:
            with store.writing() as session:
                return _save(session, submission, measurement, environment)
        except IntegrityError:
            # Another request saved the same repeat in the same moment, or the first result of the
            # same hardware: look again.
            make_transient(submission)
            make_transient(measurement)
            if last:
                raise
    raise AssertionError("unreachable")


def _enrolled(session: Session) -> Callable[[str], Ed25519PublicKey]:
    def find(key_id: str) -> Ed25519PublicKey:
        row = session.get(SigningKey, key_id)
        if row is None:
            raise UnknownKey(
                f"no key {key_id} is enrolled",
                field="signatures.keyid",
                mend="POST /api/v1/keys enrolls it (bench-agent enroll)",
            )
        # It was checked when it was enrolled; the key is the end of its SubjectPublicKeyInfo.
        return Ed25519PublicKey.from_public_bytes(row.spki[-32:])

    return find


def _submission(opened: Envelope, now: datetime) -> Submission:
    return Submission(
        id=secrets.token_hex(8),
        payload=opened.payload,
        payload_sha256=opened.payload_sha256,
        payload_type=opened.payload_type,
        signature=opened.signatures[0].value,
        key_id=opened.signatures[0].key_id,
        received_at=now,
    )


def _save(
    session: Session,
    submission: Submission,
    measurement: Measurement,
    environment: EnvironmentRow,
) -> tuple[Submission, Measurement, bool]:
    kept = _kept(session, submission, measurement)
    if kept is not None:
        return (*kept, False)
    session.add(submission)
    session.flush()
    session.add(measurement)
    if session.get(EnvironmentRow, environment.id) is None:
        session.execute(insert(EnvironmentRow).values(environment.model_dump()))
    session.flush()
    standings.add(session, [measurement])
    return submission, measurement, True


def _kept(
    session: Session, submission: Submission, measurement: Measurement
) -> tuple[Submission, Measurement] | None:
    """The rows that are kept for this payload, or None.

    One payload names one repeat, so whoever holds the repeat is it, or stands in its way.

    Raises:
        Conflict: another payload is kept for the repeat.
    """
    row = measurement
    found = session.exec(
        select(Submission, Measurement)
        .where(Measurement.submission_id == Submission.id)
        .where(Measurement.key_id == row.key_id)
        .where(Measurement.run_id == row.run_id)
        .where(Measurement.cell_digest == row.cell_digest)
        .where(Measurement.repeat == row.repeat)
    ).first()
    if found is not None and found[0].payload_sha256 != submission.payload_sha256:
        raise Conflict(
            f"result {found[0].id} is kept for repeat {row.repeat} of this cell in run "
            f"{row.run_id}, and its payload differs",
            field="predicate.repeat",
            mend="count a new measurement as a new repeat or a new run",
        )
    return found
