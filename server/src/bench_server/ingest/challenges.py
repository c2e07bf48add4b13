"""Challenges: a nonce for one run of one key, signed, so that anyone can check it later.

A result bound to a fresh challenge was not measured before the challenge was issued. It proves
neither a duration nor that the result is true.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from sqlalchemy import Connection, Row

from bench_protocol.base import strict_json
from bench_protocol.base.errors import BadSignature, InvalidField
from bench_protocol.base.units import utc_text
from bench_protocol.payload import acts
from bench_protocol.payload.acts import ChallengeIssued, ChallengeRequest
from bench_protocol.payload.result import Result
from bench_protocol.signing import envelope
from bench_protocol.signing.envelope import Envelope

from ..checks.submission import SubmissionFacts
from ..db.store import Store
from ..db.tables import Challenge, table_of
from ..db.upsert import insert_new
from ..errors import Conflict
from ..log.server_keys import Authority
from . import left_out
from .key_registry import find_key, require_active


@dataclass(frozen=True)
class ChallengeAnswer:
    """A challenge to copy into a run's results, and the server's signature of it."""

    id: str
    nonce: str
    server_origin: str
    issued_at: str
    expires_at: str
    envelope: dict[str, Any]


def give(
    raw: bytes, store: Store, authority: Authority, now: datetime, hours: float
) -> ChallengeAnswer:
    """Issue a challenge to the key that signed the request. It stays fresh for some hours.

    Raises:
        UnknownKey, KeyNotActive: the key may send no results.
        Conflict: another key drew this id.
    """
    opened = envelope.read(raw)
    with store.writing() as session:
        request = _request(opened, find_key(session), authority.origin)
        require_active(session, request.key_id)
        until = now + timedelta(hours=hours)
        new = request.model_dump(include={"id", "key_id", "run_id"})
        new |= {"nonce": secrets.token_hex(32), "issued_at": now, "expires_at": until}
        issue(session.connection(), new)
        row = session.get_one(Challenge, request.id)
        if row.key_id != request.key_id:
            raise Conflict(f"challenge {row.id} is another key's", field="id", hint="draw an id")
        issued = given_challenge(row, authority)
    signed = envelope.seal(acts.CHALLENGE_PAYLOAD_TYPE, acts.payload(issued), authority.challenge)
    said = issued.model_dump(exclude={"key_id"})
    return ChallengeAnswer(**said, envelope=strict_json.loads(signed))


def issue(connection: Connection, new: Mapping[str, Any]) -> None:
    """Store a challenge, unless one has its id. A request at the same time waits for this one."""
    if insert_new(connection, table_of(Challenge), [new]):
        left_out.count_last(connection, new["key_id"], new["id"])


def _request(
    opened: Envelope, find: Callable[[str], Ed25519PublicKey], origin: str
) -> ChallengeRequest:
    payload = envelope.open_envelope(opened, acts.CHALLENGE_REQUEST_PAYLOAD_TYPE, find)
    request = ChallengeRequest.parse(payload)
    if [signature.key_id for signature in opened.signatures] != [request.key_id]:
        raise BadSignature(f"key {request.key_id} alone has to sign", field="signatures")
    if request.server_origin != origin:
        raise InvalidField(
            f"the request is for {request.server_origin}, this server is {origin}",
            field="server_origin",
            hint="GET /api/v1/log names the origin",
        )
    return request


def given_challenge(row: Challenge, authority: Authority) -> ChallengeIssued:
    """The payload that the server signed when it issued the challenge."""
    return ChallengeIssued(
        id=row.id,
        nonce=row.nonce,
        key_id=row.key_id,
        server_origin=authority.origin,
        issued_at=utc_text(row.issued_at),
        expires_at=utc_text(row.expires_at),
    )


class StoredChallenge(NamedTuple):
    """A challenge that was issued, as far as results are compared with it."""

    id: str
    nonce: str
    key_id: str
    issued_at: datetime
    expires_at: datetime


def binds(row: StoredChallenge | ChallengeIssued | None, result: Result, origin: str) -> bool:
    """Whether this server issued a challenge to the key of the result that names it. Ids are
    public: anyone can copy another key's."""
    named = result.challenge
    return (
        named is not None
        and row is not None
        and (row.nonce, row.key_id) == (named.nonce, result.agent.key_id)
        and named.server_origin == origin
    )


def facts(
    result: Result, row: StoredChallenge | Row[Any] | None, received_at: datetime
) -> SubmissionFacts:
    """The server's observations of a submission; ``row``: the challenge that binds it, if any."""
    if row is None:
        return SubmissionFacts(received_at, "none" if result.challenge is None else "foreign")
    if received_at > row.expires_at:
        return SubmissionFacts(received_at, "expired")
    return SubmissionFacts(received_at, "fresh", row.issued_at)
