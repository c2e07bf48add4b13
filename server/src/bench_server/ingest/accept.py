"""Accept a batch of verified results: refuse, store, log, in one transaction.

A result is refused for what follows from itself, its key and its challenge alone. No figure of
another result is read or written here: the projector applies the log's entries afterwards
(:mod:`bench_server.projection`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, or_, select
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
from ..errors import Conflict, Gone, KeyNotActive
from ..log import reader, writer
from ..log.server_keys import Authority
from . import challenges, key_registry, left_out
from .challenges import StoredChallenge
from .key_registry import KeyStatus


@dataclass(frozen=True)
class Opened:
    """A verified result on its way into the log, under its future id."""

    id: str
    envelope: Envelope
    result: Result
    received_at: datetime

    def row(self, challenge_id: str | None) -> dict[str, object]:
        (signature,) = self.envelope.signatures
        return {
            "id": self.id,
            "payload": self.envelope.payload,
            "payload_sha256": self.envelope.payload_sha256,
            "payload_type": self.envelope.payload_type,
            "signature": signature.value,
            "key_id": signature.key_id,
            "received_at": self.received_at,
            "run_id": self.result.run_id,
            "cell_digest": self.result.cell.digest,
            "repeat": self.result.repeat,
            "challenge_id": challenge_id,
            "outlier": None,
        }


@dataclass(frozen=True)
class Checked:
    """An opened result that may be stored, with the challenge that binds it, or the error that
    refuses it."""

    opened: Opened
    challenge: StoredChallenge | None = None
    refusal: ProtocolError | None = None

    @property
    def row(self) -> dict[str, object]:
        return self.opened.row(None if self.challenge is None else self.challenge.id)


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


def accept_all(
    session: Session, authority: Authority, opened: Sequence[Opened]
) -> dict[str, Accepted | ProtocolError]:
    """Store and log each result in the session's transaction, which holds the log's lock.

    Returns:
        The outcome of each by its future id; a refused one does not affect the others. A payload
        that was accepted before has its first outcome, but for ``created``.
    """
    connection = session.connection()
    batch = Batch.read(connection, authority.origin, opened)
    checked = [batch.check(item) for item in opened]
    possible = [item for item in checked if item.refusal is None]
    inserted = insert_new(connection, SUBMISSIONS, [item.row for item in possible])
    if bound := {item.challenge.id for item in possible if item.challenge is not None}:
        left_out.use(connection, sorted(bound))
    new = [item for item in opened if item.id in inserted]
    leaves = [writer.Leaf("result", item.envelope, item.id) for item in new]
    logged = writer.append(session, authority, leaves, opened[0].received_at) if new else []
    receipts = {item.id: receipt for item, receipt in zip(new, logged, strict=True)}
    return {item.opened.id: _outcome(session, item, receipts) for item in checked}


def _outcome(
    session: Session, item: Checked, receipts: Mapping[str, Receipt]
) -> Accepted | ProtocolError:
    if item.refusal is not None:
        return item.refusal
    opened = item.opened
    if opened.id in receipts:
        receipt = receipts[opened.id]
        return _accepted(item, opened.id, opened.received_at, receipt, created=True)
    digest = opened.envelope.payload_sha256
    same = session.connection().execute(STORED, {"digests": [digest]}).first()
    if same is None:
        return _refused_by(session.connection(), item)
    receipt = reader.receipts_of_results(session, [same.id])[same.id]
    return _accepted(item, same.id, same.received_at, receipt, created=False)


def _accepted(
    item: Checked, id: str, received_at: datetime, receipt: Receipt, *, created: bool
) -> Accepted:
    result = item.opened.result
    facts = challenges.facts(result, item.challenge, received_at)
    return Accepted(
        id,
        item.opened.envelope.payload_sha256,
        result.agent.key_id,
        received_at,
        submission_checks.of_submission(result, facts),
        receipt,
        created,
    )


def _refused_by(connection: Connection, item: Checked) -> Conflict:
    """Why a constraint refused a new payload: another one is stored for its repeat, or has its id.

    An id follows from its payload, so a new attempt changes nothing. Half of its 64 bits are the
    second of the signature: beside n results of one second the probability is n / 2**32.
    """
    c, row = SUBMISSIONS.c, item.row
    same_repeat: list[ColumnElement[bool]] = [
        (c.run_id == row["run_id"]) & (c.key_id == row["key_id"])
    ]
    if item.challenge is not None:
        same_repeat.append(c.challenge_id == item.challenge.id)
    of_cell = (c.cell_digest == row["cell_digest"]) & (c.repeat == row["repeat"])
    query = select(c.id, c.run_id).where(of_cell, or_(*same_repeat)).limit(1)
    stored = connection.execute(query).first()
    if stored is None:
        detail = f"another result has the id {row['id']}"
        return Conflict(detail, field="payload", hint="measure again")
    which = f"run {stored.run_id}" if stored.run_id == row["run_id"] else "this challenge"
    return Conflict(
        f"result {stored.id} is stored for repeat {row['repeat']} of this cell in {which}, and its "
        "payload differs",
        field="predicate.repeat",
        hint="count a new measurement as a new repeat or a new run",
    )


@dataclass(frozen=True)
class Batch:
    """The stored rows that a batch names. ``withdrawn`` and ``stored``: digests of payloads."""

    origin: str
    keys: Mapping[str, KeyStatus]
    challenges: Mapping[str, StoredChallenge]
    withdrawn: frozenset[str]
    stored: frozenset[str]

    @classmethod
    def read(cls, connection: Connection, origin: str, opened: Sequence[Opened]) -> "Batch":
        key_ids = {item.result.agent.key_id for item in opened}
        named = {item.result.challenge.id for item in opened if item.result.challenge is not None}
        digests = {"digests": [item.envelope.payload_sha256 for item in opened]}
        keys = connection.execute(KEYS, {"ids": list(key_ids)})
        issued = connection.execute(CHALLENGES, {"ids": list(named)}) if named else ()
        return cls(
            origin,
            {row.key_id: KeyStatus._make(row) for row in keys},
            {row.id: StoredChallenge._make(row) for row in issued},
            frozenset(connection.scalars(WITHDRAWN, digests)),
            frozenset(row.payload_sha256 for row in connection.execute(STORED, digests)),
        )

    def check(self, opened: Opened) -> Checked:
        """Refuse a withdrawn result, and a new one of a key that may send none."""
        result, digest = opened.result, opened.envelope.payload_sha256
        if digest in self.withdrawn:
            gone = Gone("this result was withdrawn", field="payload", hint="measure again")
            return Checked(opened, refusal=gone)
        if digest not in self.stored:
            try:
                key_registry.refuse_inactive(self.keys[result.agent.key_id])
            except KeyNotActive as error:
                return Checked(opened, refusal=error)
        named = self.challenges.get(result.challenge.id) if result.challenge is not None else None
        return Checked(opened, named if challenges.binds(named, result, self.origin) else None)


# Statements of every batch, built once.
SUBMISSIONS = table_of(Submission)
_KEYS, _CHALLENGES, _WITHDRAWN = map(table_of, (SigningKey, Challenge, Withdrawn))
KEYS = select(*(_KEYS.c[name] for name in KeyStatus._fields)).where(among(_KEYS.c.key_id, "ids"))
CHALLENGES = select(*(_CHALLENGES.c[name] for name in StoredChallenge._fields)).where(
    among(_CHALLENGES.c.id, "ids")
)
WITHDRAWN = select(_WITHDRAWN.c.payload_sha256).where(among(_WITHDRAWN.c.payload_sha256, "digests"))
STORED = select(SUBMISSIONS.c.id, SUBMISSIONS.c.payload_sha256, SUBMISSIONS.c.received_at).where(
    among(SUBMISSIONS.c.payload_sha256, "digests")
)
