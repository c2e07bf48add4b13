"""Accept a batch of verified results: refuse, store, log, in one transaction.

A result is refused for what follows from itself, its key and its challenge alone. No figure of
another result is read or written here: the projector applies the log's entries afterwards
(:mod:`bench_server.projection`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Connection, or_, select, update
from sqlmodel import Session

from bench_protocol.base.errors import ProtocolError
from bench_protocol.payload.result import Result
from bench_protocol.signing.envelope import Envelope
from bench_protocol.signing.receipts import Receipt

from ..checks import submission as submission_checks
from ..checks.verdicts import CheckVerdict
from ..db.lists import among
from ..db.tables import Challenge, SigningKey, Submission, Withdrawn, table_of
from ..db.upsert import insert_new
from ..errors import Conflict, Gone, NotReady
from ..log import reader, writer
from ..log.server_keys import Authority
from . import challenges, key_registry
from .challenges import StoredChallenge
from .key_registry import KeyStatus

Given = TypeVar("Given")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Opened:
    """A verified result on its way into the log, under its future id."""

    id: str
    envelope: Envelope
    result: Result
    received_at: datetime


@dataclass(frozen=True)
class Accepted:
    """A logged result. ``verdicts``: of the checks of its challenge and clocks, which depend on
    nothing later. ``created``: False where the payload was accepted before."""

    id: str
    payload_sha256: str
    key_id: str
    received_at: datetime
    verdicts: tuple[CheckVerdict, ...]
    receipt: Receipt
    created: bool


class StoredSubmission(NamedTuple):
    """A submission, as far as a repeated one is compared with it."""

    id: str
    payload_sha256: str
    key_id: str
    received_at: datetime
    signature: bytes
    challenge_id: str | None


def attempt(step: Callable[[Given], Outcome], given: Given) -> Outcome | ProtocolError:
    """The outcome of a step for each item of a batch: a value, or the error that refuses it."""
    try:
        return step(given)
    except ProtocolError as error:
        return error


def accept_all(
    session: Session, authority: Authority, opened: Sequence[Opened]
) -> list[Accepted | ProtocolError]:
    """Store and log each result in the session's transaction, which holds the log's lock; a refused
    result does not affect the others."""
    connection = session.connection()
    batch = Batch.read(connection, authority.origin, opened)
    checked = [attempt(batch.row, result) for result in opened]
    rows = [row for row in checked if not isinstance(row, ProtocolError)]
    stored = insert_new(connection, SUBMISSIONS, rows)
    if bound := {str(row["challenge_id"]) for row in rows if row["challenge_id"] is not None}:
        connection.execute(USED, {"ids": sorted(bound)})
    new = [result for result in opened if result.id in stored]
    leaves = [writer.Leaf("result", result.envelope, result.id) for result in new]
    receipts = writer.append(session, authority, leaves, opened[0].received_at) if new else []
    receipt_of = {result.id: receipt for result, receipt in zip(new, receipts, strict=True)}

    def outcome(result: Opened, row: Mapping[str, object] | ProtocolError) -> Accepted:
        if isinstance(row, ProtocolError):
            raise row
        if result.id not in receipt_of:
            return repeated(session, _refused_by(connection, row), result.result)
        bound = batch.challenges.get(str(row["challenge_id"]))
        facts = challenges.facts(result.result, bound, result.received_at)
        return Accepted(
            result.id,
            result.envelope.payload_sha256,
            result.result.agent.key_id,
            result.received_at,
            submission_checks.of_submission(result.result, facts),
            receipt_of[result.id],
            created=True,
        )

    pairs = zip(opened, checked, strict=True)
    return [attempt(lambda pair: outcome(*pair), pair) for pair in pairs]


def repeated(session: Session, stored: StoredSubmission, result: Result) -> Accepted:
    """The answer to a payload that was accepted before: the first one, but for ``created``.

    Args:
        result: of the payload.
    """
    bound = session.get(Challenge, stored.challenge_id) if stored.challenge_id else None
    facts = challenges.facts(result, bound, stored.received_at)
    return Accepted(
        stored.id,
        stored.payload_sha256,
        stored.key_id,
        stored.received_at,
        submission_checks.of_submission(result, facts),
        reader.receipts_of_results(session, [stored.id])[stored.id],
        created=False,
    )


def with_digests(connection: Connection, digests: Sequence[str]) -> dict[str, StoredSubmission]:
    """Stored submissions of these payloads, by digest."""
    rows = connection.execute(WITH_DIGESTS, {"digests": list(digests)})
    return {row.payload_sha256: StoredSubmission._make(row) for row in rows}


@dataclass(frozen=True)
class Batch:
    """What the database holds of the keys, challenges and withdrawals that a batch names."""

    origin: str
    keys: Mapping[str, KeyStatus]
    challenges: Mapping[str, StoredChallenge]
    withdrawn: frozenset[str]

    @classmethod
    def read(cls, connection: Connection, origin: str, opened: Sequence[Opened]) -> "Batch":
        key_ids = {item.result.agent.key_id for item in opened}
        named = {item.result.challenge.id for item in opened if item.result.challenge is not None}
        digests = [item.envelope.payload_sha256 for item in opened]
        issued = connection.execute(CHALLENGES, {"ids": list(named)}) if named else ()
        return cls(
            origin,
            {
                row.key_id: KeyStatus._make(row)
                for row in connection.execute(KEYS, {"ids": list(key_ids)})
            },
            {row.id: StoredChallenge._make(row) for row in issued},
            frozenset(connection.scalars(WITHDRAWN, {"digests": digests})),
        )

    def row(self, opened: Opened) -> dict[str, object]:
        """The submission's columns.

        Raises:
            Gone: the result was withdrawn.
            KeyNotActive: its key may send none.
        """
        result, sealed = opened.result, opened.envelope
        if sealed.payload_sha256 in self.withdrawn:
            raise Gone("this result was withdrawn", field="payload", hint="measure again")
        key_registry.refuse_inactive(self.keys[result.agent.key_id])
        named = self.challenges.get(result.challenge.id) if result.challenge is not None else None
        bound = named if challenges.binds(named, result, self.origin) else None
        (signature,) = sealed.signatures
        return {
            "id": opened.id,
            "payload": sealed.payload,
            "payload_sha256": sealed.payload_sha256,
            "payload_type": sealed.payload_type,
            "signature": signature.value,
            "key_id": signature.key_id,
            "received_at": opened.received_at,
            "run_id": result.run_id,
            "cell_digest": result.cell.digest,
            "repeat": result.repeat,
            "challenge_id": bound.id if bound is not None else None,
            "outlier": None,
        }


def _refused_by(connection: Connection, row: Mapping[str, object]) -> StoredSubmission:
    """The stored submission with the payload of a row that a constraint refused.

    Raises:
        Conflict: another payload is stored for its repeat.
        NotReady: its id is taken, which a new attempt changes.
    """
    digest = str(row["payload_sha256"])
    if digest in (same := with_digests(connection, [digest])):
        return same[digest]
    c = SUBMISSIONS.c
    same_repeat: list[ColumnElement[bool]] = [
        (c.run_id == row["run_id"]) & (c.key_id == row["key_id"])
    ]
    if row["challenge_id"] is not None:
        same_repeat.append(c.challenge_id == row["challenge_id"])
    of_cell = (c.cell_digest == row["cell_digest"]) & (c.repeat == row["repeat"])
    query = select(c.id, c.run_id).where(of_cell, or_(*same_repeat)).limit(1)
    stored = connection.execute(query).first()
    if stored is None:
        raise NotReady(f"another result got the id {row['id']} at the same time")
    which = f"run {stored.run_id}" if stored.run_id == row["run_id"] else "this challenge"
    raise Conflict(
        f"result {stored.id} is stored for repeat {row['repeat']} of this cell in {which}, and its "
        "payload differs",
        field="predicate.repeat",
        hint="count a new measurement as a new repeat or a new run",
    )


# Statements of every batch, built once.
SUBMISSIONS = table_of(Submission)
_KEYS, _CHALLENGES, _WITHDRAWN = map(table_of, (SigningKey, Challenge, Withdrawn))
KEYS = select(*(_KEYS.c[name] for name in KeyStatus._fields)).where(among(_KEYS.c.key_id, "ids"))
CHALLENGES = select(*(_CHALLENGES.c[name] for name in StoredChallenge._fields)).where(
    among(_CHALLENGES.c.id, "ids")
)
USED = update(_CHALLENGES).where(among(_CHALLENGES.c.id, "ids")).values(used=True)
WITHDRAWN = select(_WITHDRAWN.c.payload_sha256).where(among(_WITHDRAWN.c.payload_sha256, "digests"))
WITH_DIGESTS = select(*(SUBMISSIONS.c[name] for name in StoredSubmission._fields)).where(
    among(SUBMISSIONS.c.payload_sha256, "digests")
)
