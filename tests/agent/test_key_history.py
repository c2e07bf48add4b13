"""Key history from a log: entries that it must not contain are refused."""

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.fakes import results
from tests.fakes.log import KEY, ORIGIN, log_of

from bench_agent.remote.key_history import KeyHistory, replay
from bench_protocol.base.errors import BadSignature, ProtocolError, UnknownKey
from bench_protocol.payload import acts, statement
from bench_protocol.payload.acts import Act, Revocation, Rotation
from bench_protocol.signing import envelope, note

OPERATOR, A, B, C, STRANGER = (results.private_key(seed) for seed in range(21, 26))
ID = {name: results.key_id(key) for name, key in zip("ABC", (A, B, C), strict=True)}


def sealed_event(event: Any, *signers: Ed25519PrivateKey) -> bytes:
    return envelope.seal(statement.KEY_EVENT_PAYLOAD_TYPE, acts.payload(event), *signers)


def enrolled(key: Ed25519PrivateKey) -> bytes:
    payload = statement.key_event_payload(statement.enroll_event(key.public_key(), results.AT))
    return envelope.seal(statement.KEY_EVENT_PAYLOAD_TYPE, payload, key)


def revoked(
    target: Ed25519PrivateKey, signer: Ed25519PrivateKey, since: int | None = None
) -> bytes:
    event = Revocation(
        event="revoke",
        key_id=results.key_id(target),
        reason="lost",
        compromised_since_log_index=since,
        server_origin=ORIGIN,
        at=results.AT,
    )
    return sealed_event(event, signer)


def rotated(old: Ed25519PrivateKey, new: Ed25519PrivateKey) -> bytes:
    event = Rotation(
        event="rotate",
        public_key=statement.enroll_event(new.public_key(), results.AT).public_key,
        supersedes=results.key_id(old),
        server_origin=ORIGIN,
        at=results.AT,
    )
    return sealed_event(event, old, new)


def assigned(
    key: Ed25519PrivateKey, owner: str, signer: Ed25519PrivateKey = OPERATOR, kind: Any = "assign"
) -> bytes:
    act = Act(
        act=kind,
        id="0" * 32,
        key_id=results.key_id(signer),
        server_origin=ORIGIN,
        at=results.AT,
        key=results.key_id(key),
        owner=owner,
    )
    return envelope.seal(acts.ACT_PAYLOAD_TYPE, acts.payload(act), signer)


def logged(*sealed: bytes) -> list[dict[str, Any]]:
    log = log_of(sealed)
    return [
        {"envelope": json.loads(raw), "receipt": log.receipt(index, len(sealed))}
        for index, raw in enumerate(sealed)
    ]


def history(*sealed: bytes) -> KeyHistory:
    return replay(logged(*sealed), note.note_key(ORIGIN, KEY), OPERATOR.public_key())


BY_ITSELF = assigned(B, acts.first_owner(ID["A"]), B)
SIBLINGS = (enrolled(A), assigned(A, "lab"), enrolled(B), assigned(B, "lab"))


def test_a_key_of_the_same_owner_may_revoke() -> None:
    key_history = history(*SIBLINGS, revoked(A, B, since=2))
    key_history.require_counting(ID["A"], 1)
    with pytest.raises(BadSignature, match="revoked for what was logged from entry 2 on"):
        key_history.require_counting(ID["A"], 2)
    assert key_history.kinds == ["enroll", "assign", "enroll", "assign", "revoke"]


@pytest.mark.parametrize(
    ("entries", "error", "says"),
    [
        ((*SIBLINGS, revoked(A, STRANGER)), UnknownKey, "not in the key history"),
        ((enrolled(A), revoked(A, B)), UnknownKey, "not in the key history"),
        ((enrolled(A), enrolled(B), revoked(A, B)), BadSignature, "another owner"),
        ((enrolled(A), enrolled(B), BY_ITSELF, revoked(A, B)), BadSignature, "for the operator"),
        ((*SIBLINGS, assigned(B, "other"), revoked(A, B)), BadSignature, "another owner"),
        ((*SIBLINGS, revoked(B, B), revoked(A, B)), BadSignature, "ended with entry 4"),
        ((*SIBLINGS, rotated(B, C), revoked(A, B)), BadSignature, "ended with entry 4"),
        ((enrolled(A), assigned(A, "lab", A, "hide")), BadSignature, "for the operator"),
        ((rotated(A, B),), UnknownKey, "not in the key history"),
        ((enrolled(A), revoked(A, A), rotated(A, B)), BadSignature, "ended with entry 1"),
    ],
)
def test_nobody_else_may(entries: tuple[bytes, ...], error: type[ProtocolError], says: str) -> None:
    with pytest.raises(error, match=says):
        history(*entries)


def test_an_altered_revocation_is_refused() -> None:
    document = json.loads(revoked(A, B))
    document["signatures"][0]["sig"] = json.loads(revoked(A, B, since=0))["signatures"][0]["sig"]
    with pytest.raises(BadSignature, match="does not verify"):
        history(*SIBLINGS, json.dumps(document).encode())


def test_owners_follow_a_rotation_and_a_key_ends_with_it() -> None:
    key_history = history(*SIBLINGS, rotated(B, C), revoked(A, C))
    assert key_history.owners[ID["C"]] == "lab"
    key_history.require_counting(ID["B"], 3)
    for ended, index in (("B", 5), ("A", 6)):
        with pytest.raises(BadSignature, match="ended with entry"):
            key_history.require_counting(ID[ended], index)


def test_the_operator_and_the_key_itself_may_revoke() -> None:
    for signer in (OPERATOR, A):
        assert history(enrolled(A), revoked(A, signer)).ended == {ID["A"]: 1}


def test_the_order_is_the_logs() -> None:
    first, second, *others = logged(*SIBLINGS)
    with pytest.raises(BadSignature, match="not in the order of the log"):
        replay([*others, first, second], note.note_key(ORIGIN, KEY), OPERATOR.public_key())
