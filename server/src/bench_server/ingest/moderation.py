"""Moderation: accept acts of senders and of the operator on results, keys and owners.

Every act is a signed envelope. It is logged unless it only reads. Acceptance refuses impossible
acts and changes keys; the projector applies the effect on results.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import Field
from sqlalchemy.orm import defer
from sqlmodel import Session, col, delete, select, update

from bench_protocol.base import strict_json
from bench_protocol.base.errors import BadSignature, InvalidEnvelope, InvalidField
from bench_protocol.base.units import Wire, utc_text
from bench_protocol.payload import acts
from bench_protocol.payload.acts import Act
from bench_protocol.signing import envelope
from bench_protocol.signing.envelope import Envelope
from bench_protocol.signing.receipts import Receipt

from ..db.store import Store
from ..db.tables import LogEntry, SigningKey, Submission, Withdrawn
from ..db.tables.base import InCell
from ..errors import Conflict, Gone, KeyNotActive, NotFound, NotYours
from ..log import reader, writer
from ..log.server_keys import Authority, Identity
from . import columns, hardware_names, key_registry, left_out

# Anyone who has a fresh request to read can use it, so it expires soon.
READING_MINUTES = 5
# States that the operator's acts give a result; its sender cannot change them.
FINAL = {"flag": "flagged", "quarantine": "quarantined"}
OF_SENDER = ("hide", "show", "withdraw")
ABOUT_RESULTS = (*OF_SENDER, "flag", "quarantine", "restore")


class ActBody(Wire):
    """Body of ``POST /api/v1/acts``: the signed act."""

    envelope: dict[str, Any] = Field(description="DSSE envelope of an act")


@dataclass(frozen=True)
class ActResult:
    """``receipt`` is None if the act is not logged: it only reads, or it changes nothing."""

    act: Act
    receipt: Receipt | None


def perform(
    raw: bytes,
    store: Store,
    authority: Authority,
    now: datetime,
    spend: Callable[[str], None] = lambda _: None,
) -> ActResult:
    """Verify, apply and log an act. One of a sender that changes nothing is not logged.

    ``spend`` counts an act of a sender in the rate of its key; if it raises, nothing has happened.

    Raises:
        NotYours: the key may not do this.
    """
    body = ActBody.parse(raw)
    opened = envelope.read(strict_json.dumps(body.envelope))
    with store.writing() as session:
        writer.take_turn(session)
        act = verified(session, authority.identity, opened)
        if (receipt := reader.receipt_of_payload(session, opened.payload_sha256)) is not None:
            return ActResult(act, receipt)
        of_sender = act.key_id != authority.identity.operator_key_id
        if act.act in acts.READING_ACTS:
            _require_fresh(act, now)
            spend(act.key_id)
            return ActResult(act, None)
        require_possible(session, act)
        if of_sender:
            spend(act.key_id)
            if _changes_nothing(session, act):
                return ActResult(act, None)
        if of_sender and act.act in OF_SENDER:
            _count_withdrawn(session, act)
        change_keys(session, act)
        leaf = writer.Leaf(
            "act", opened, submission_id=act.result, key_chain=_key_chain(session, act)
        )
        (receipt,) = writer.append(session, authority, [leaf], now)
        if act.act == "withdraw":
            _erase(session, _needed(act.result, "result"), receipt.index, now)
    return ActResult(act, receipt)


def decide(
    store: Store, authority: Authority, now: datetime, kind: acts.OperatorAct, **about: Any
) -> ActResult:
    """Perform an act of the operator.

    Raises:
        ProtocolError: one of its kinds.
    """
    sealed = envelope.encode(operators(authority, now, kind, **about))
    return perform(b'{"envelope":%s}' % sealed, store, authority, now)


def operators(
    authority: Authority, now: datetime, kind: acts.OperatorAct, **about: Any
) -> Envelope:
    act = Act(
        act=kind,
        id=secrets.token_hex(16),
        key_id=authority.identity.operator_key_id,
        server_origin=authority.origin,
        at=utc_text(now),
        **about,
    )
    sealed = envelope.seal(acts.ACT_PAYLOAD_TYPE, acts.payload(act), authority.operator)
    return envelope.read(sealed)


def verified(session: Session, identity: Identity, opened: Envelope) -> Act:
    """The act in an envelope, after checking that its signer may do it.

    Raises:
        NotYours: an act of the operator, signed by another key.
    """
    if len(opened.signatures) != 1:
        raise InvalidEnvelope("an act has exactly one signature", field="envelope.signatures")
    payload = envelope.open_envelope(opened, acts.ACT_PAYLOAD_TYPE, _signers(session, identity))
    act = Act.parse(payload)
    signer = opened.signatures[0].key_id
    if act.key_id != signer:
        raise BadSignature(
            f"the act names key {act.key_id}, but {signer} signed it", field="key_id"
        )
    if act.server_origin != identity.origin:
        raise InvalidField(
            f"the act is for {act.server_origin}, this server is {identity.origin}",
            field="server_origin",
        )
    operators_own = signer == identity.operator_key_id
    if act.act not in (acts.OPERATOR_ACTS if operators_own else acts.OWN_ACTS):
        who = "whoever sent a result" if act.act in acts.OWN_ACTS else "the operator"
        raise NotYours(f"{act.act} is for {who}", field="act")
    return act


def require_possible(session: Session, act: Act) -> None:
    """Refuse an act on a result that it cannot have an effect on.

    Raises:
        NotFound, Gone, NotYours, Conflict, InvalidField: the act is impossible.
    """
    if act.act not in ABOUT_RESULTS:
        return
    result_id = _needed(act.result, "result")
    submission = session.get(Submission, result_id)
    if submission is None:
        if session.get(Withdrawn, result_id) is not None:
            raise Gone(f"result {result_id} was withdrawn", field="result")
        raise NotFound(f"no result {result_id}", field="result")
    # The operator's key is not enrolled.
    if act.act in acts.OWN_ACTS and session.get(SigningKey, act.key_id) is not None:
        _require_own(session, act, submission)
    if act.act in ("hide", "show") and (newest := newest_act(session, result_id)) in FINAL:
        raise Conflict(
            f"the operator has {FINAL[newest]} result {result_id}; it can still be withdrawn",
            field="result",
        )
    if act.act in FINAL:
        _needed(act.reason, "reason")


def change_keys(session: Session, act: Act) -> None:
    """Apply an act's changes to keys: an approval or an owner; other acts change none.

    Raises:
        UnknownKey, InvalidField: the act is impossible.
    """
    if act.act == "approve":
        key = key_registry.key_with_id(session, _needed(act.key, "key"))
        if key.status == "pending":
            key.status = "active"
    elif act.act == "assign":
        key_registry.assign(session, _needed(act.key, "key"), _needed(act.owner, "owner"))
    elif act.act in acts.ABOUT_OWNERS:
        key_registry.owner_with_label(session, _needed(act.owner, "owner"))


def newest_act(
    session: Session, result_id: str, kinds: Sequence[str] = ABOUT_RESULTS
) -> str | None:
    """The kind of the newest logged act of these kinds about a result; None if there is none."""
    raws = session.exec(
        select(LogEntry.envelope)
        .where(LogEntry.submission_id == result_id, LogEntry.kind == "act")
        .order_by(col(LogEntry.log_index).desc())
    )
    logged = (Act.parse(envelope.read(raw).payload).act for raw in raws if raw)
    return next((kind for kind in logged if kind in kinds), None)


def results_of_chain(session: Session, key_id: str) -> list[Submission]:
    """All results of a key's rotations, hidden ones too, oldest first; a payload is read on use."""
    key = key_registry.key_with_id(session, key_id)
    rows = session.exec(
        select(Submission)
        .where(Submission.key_id == SigningKey.key_id)
        .where(SigningKey.first_key_id == key.first_key_id)
        .order_by(col(Submission.received_at), col(Submission.id))
        .options(defer(Submission.payload))  # type: ignore[arg-type]
    )
    return list(rows.all())


def _erase(session: Session, result_id: str, act_index: int, now: datetime) -> None:
    """Erase a withdrawn result: its payload, and the salts and envelopes of all of its entries,
    that of the withdrawal included. The tree does not change."""
    submission = session.get_one(Submission, result_id)
    entries = col(LogEntry.submission_id) == result_id
    log_index = session.exec(
        select(LogEntry.log_index).where(entries, LogEntry.kind == "result")
    ).one()
    cell = columns.of_result(columns.stored_result(submission.payload))
    hardware_names.put(session.connection(), [cell])
    session.add(
        Withdrawn(
            **{name: cell[name] for name in InCell.model_fields},
            id=result_id,
            payload_sha256=submission.payload_sha256,
            log_index=log_index,
            act_index=act_index,
            received_at=submission.received_at,
            withdrawn_at=now,
        )
    )
    erased = {"salt": None, "envelope": None, "submission_id": None}
    session.exec(update(LogEntry).where(entries).values(**erased))
    session.exec(delete(Submission).where(col(Submission.id) == result_id))


def _changes_nothing(session: Session, act: Act) -> bool:
    """Whether a sender's act asks for the present state."""
    newest = newest_act(session, _needed(act.result, "result"))
    return act.act == newest or (act.act == "show" and newest is None)


def _count_withdrawn(session: Session, act: Act) -> None:
    """Count a result that its sender hides or withdraws once, until it is shown."""
    submission = session.get_one(Submission, act.result)
    hidden = newest_act(session, submission.id, OF_SENDER) == "hide"
    of_key = session.connection(), submission.key_id, submission.received_at
    left_out.add(*of_key, withdrawn=(act.act != "show") - hidden)


def _require_own(session: Session, act: Act, submission: Submission) -> None:
    signer = key_registry.key_with_id(session, act.key_id)
    if signer.status == "revoked":
        raise KeyNotActive(
            f"key {act.key_id} was revoked and decides nothing any more",
            field="signatures.keyid",
            hint=f"ask the operator to withdraw it: bench-server results withdraw {submission.id}",
        )
    signer = key_registry.require_active(session, act.key_id)
    if signer.first_key_id != session.get_one(SigningKey, submission.key_id).first_key_id:
        raise NotYours(
            f"result {submission.id} was sent by another key",
            field="result",
            hint="sign with the key that sent it, or with its successor",
        )


def _key_chain(session: Session, act: Act) -> str | None:
    """The key chain of an operator's act about a key; None for any other act."""
    if act.act not in ("approve", "assign"):
        return None
    return key_registry.key_with_id(session, _needed(act.key, "key")).first_key_id


def _require_fresh(act: Act, now: datetime) -> None:
    away = abs(now - datetime.fromisoformat(act.at))
    if away > timedelta(minutes=READING_MINUTES):
        raise NotYours(
            f"the request is {away.total_seconds():,.0f} s away from the server's clock, "
            f"{READING_MINUTES} minutes are allowed",
            field="at",
            hint="set this machine's clock and sign again",
        )


def _signers(session: Session, identity: Identity) -> Callable[[str], Ed25519PublicKey]:
    find = key_registry.find_key(session)

    def signer(key_id: str) -> Ed25519PublicKey:
        return identity.operator if key_id == identity.operator_key_id else find(key_id)

    return signer


def _needed(value: str | None, field: str) -> str:
    if value is None:
        raise InvalidField(f"{field} is missing", field=field)
    return value
