"""Answers about keys, the log and acts."""

import base64
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bench_protocol.signing import envelope
from bench_protocol.signing.envelope import Envelope
from bench_protocol.signing.receipts import Receipt

from ...checks.verdicts import Finding
from ...db.tables import Owner, SigningKey
from .shared_fields import InCell, InUnits


@dataclass(frozen=True)
class ReceiptAnswer:
    """Proof that the log holds something."""

    log_index: int
    salt: str
    proof: str


@dataclass(frozen=True)
class KeyAnswer:
    """An enrolled key."""

    key_id: str
    public_key: str
    status: str
    owner: str
    owner_confirmed: bool
    first_key_id: str
    revoked_reason: str | None
    compromised_since: int | None
    enrolled_at: datetime


@dataclass(frozen=True)
class LoggedEnvelope:
    """A signed envelope and its receipt."""

    envelope: dict[str, Any]
    receipt: ReceiptAnswer


@dataclass(frozen=True)
class KeyEventAnswer(KeyAnswer):
    """A key after an event, with the event's receipt."""

    receipt: ReceiptAnswer


@dataclass(frozen=True)
class KeyHistory(KeyAnswer):
    """A key and its log entries, oldest first: the events of its rotations, the operator's acts
    about them, and the same for keys that revoked one of them. ``next_start``: ``start`` of the
    next page, None on the last one."""

    events: tuple[LoggedEnvelope, ...]
    next_start: int | None


@dataclass(frozen=True)
class StatedBreak:
    """A statement that the log's newest entries were lost; ``damage``: why it does not verify."""

    statement: str
    kept_size: int | None = None
    last: datetime | None = None
    at: datetime | None = None
    reason: str | None = None
    damage: str | None = None


@dataclass(frozen=True)
class LogAnswer:
    """The log and the server's public keys."""

    origin: str
    key: str
    size: int
    root: str
    checkpoint: str
    challenge_key: str
    operator_key: str
    license: str
    breaks: tuple[StatedBreak, ...]


@dataclass(frozen=True)
class CosignedCheckpoint:
    """A checkpoint that witnesses signed."""

    day: str
    size: int
    checkpoint: str
    witnesses: tuple[str, ...]


@dataclass(frozen=True)
class CosignedAnswer:
    """Cosigned checkpoints, the newest day first, the largest of a day first."""

    checkpoints: tuple[CosignedCheckpoint, ...]


@dataclass(frozen=True)
class LogRecord:
    """One entry with its envelope; ``trust_level`` and ``ranked`` are of a result that is shown."""

    log_index: int
    kind: str
    commitment: str
    logged_at: datetime
    salt: str | None
    envelope: dict[str, Any] | None
    result_id: str | None
    hidden: bool
    challenge: dict[str, Any] | None
    outlier: Finding | None
    checkpoint: str | None
    trust_level: int | None
    ranked: bool | None


@dataclass(frozen=True)
class LogPage:
    """Entries in their order."""

    records: tuple[LogRecord, ...]
    next_start: int | None
    as_of: int


@dataclass(frozen=True)
class OwnResult(InUnits, InCell):
    """A result as its sender sees it, hidden or not; ``envelope`` in an export."""

    id: str
    moderation: str | None
    moderation_reason: str | None
    workload: str
    samples_per_second: float | None
    hardware: str
    received_at: datetime
    trust_level: int | None
    unranked_reason: str | None
    envelope: dict[str, Any] | None
    receipt: ReceiptAnswer | None


@dataclass(frozen=True)
class ActAnswer:
    """The outcome of an act; ``results`` is the answer of a ``list`` or ``export``."""

    act: str
    result: str | None
    receipt: ReceiptAnswer | None
    results: tuple["OwnResult", ...] | None


def key_fields(row: SigningKey, owner: Owner) -> dict[str, Any]:
    columns = {name: getattr(row, name, None) for name in KeyAnswer.__dataclass_fields__}
    return columns | {
        "public_key": base64.b64encode(row.spki).decode(),
        "owner_confirmed": owner.confirmed,
    }


def receipt_answer(receipt: Receipt) -> ReceiptAnswer:
    return ReceiptAnswer(receipt.index, receipt.salt.hex(), receipt.proof)


def envelope_document(opened: Envelope) -> dict[str, Any]:
    """An envelope as JSON, in the form in which this server writes envelopes."""
    document: dict[str, Any] = json.loads(envelope.encode(opened))
    return document
