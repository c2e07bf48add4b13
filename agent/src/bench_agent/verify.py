"""Verifies a result without trusting whoever shows it: envelope, key history, inclusion.

Everything needed is one document, a *bundle*, made of what a server answers; with it at hand no
server is asked. It proves who signed what and that the log holds it, not that it is true.
"""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bench_protocol import acts, envelope, keys, log, note, statement, strict_json
from bench_protocol.envelope import Envelope
from bench_protocol.errors import BadSignature, ProtocolError, UnknownKey
from bench_protocol.log import Checkpoint
from bench_protocol.result import Result

from .problems import UsageProblem

RESULT_PATH = re.compile(r"(https?://[^/]+)(?:/api/v1)?/results/([0-9a-f]{16})/?")


@dataclass(frozen=True)
class Verified:
    """What was found to hold."""

    result: Result
    key_id: str
    log_index: int
    checkpoint: Checkpoint
    sentences: tuple[str, ...]


def parse_address(text: str) -> tuple[str, str] | None:
    """Server and id of a result's address, or None where it is none."""
    match = RESULT_PATH.fullmatch(text)
    return (match[1], match[2]) if match else None


def fetch_bundle(result_id: str, fetch: Callable[[str], bytes]) -> dict[str, Any]:
    """Put together what verifies a result, from a server's answers."""
    sealed = json.loads(fetch(f"/api/v1/results/{result_id}/envelope"))
    key_id = sealed["signatures"][0]["keyid"]
    return {
        "envelope": sealed,
        "receipt": json.loads(fetch(f"/api/v1/results/{result_id}/receipt")),
        "key": json.loads(fetch(f"/api/v1/keys/{key_id}")),
        "log": json.loads(fetch("/api/v1/log")),
    }


def read_bundle(path: Path) -> dict[str, Any]:
    """A bundle from a file.

    Raises:
        UsageProblem: the file holds none.
    """
    try:
        document: Any = strict_json.loads(path.read_bytes(), max_bytes=8 * 1024 * 1024)
        parts = {name: document[name] for name in ("envelope", "receipt", "key", "log")}
    except (OSError, ProtocolError, KeyError, TypeError) as error:
        raise UsageProblem(
            f"{path} is no bundle ({error}); bench-agent verify ADDRESS --save FILE makes one"
        ) from None
    return parts


def verify(bundle: dict[str, Any], log_key: str | None = None) -> Verified:
    """Check a bundle.

    Args:
        log_key: the verifier key of the log that is trusted; the bundle's own where None.

    Raises:
        ProtocolError: something does not hold; it says what.
    """
    try:
        trusted = note.parse_key(log_key or bundle["log"]["key"])
        operator = statement.public_key(bundle["log"]["operator_key"])
        known, revoked_since, said = _key_history(bundle["key"]["events"], trusted, operator)
        opened = envelope.read(strict_json.dumps(bundle["envelope"]))
        receipt = log.parse_proof(
            bytes.fromhex(bundle["receipt"]["salt"]), bundle["receipt"]["proof"]
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ProtocolError):
            raise
        raise BadSignature(f"the bundle lacks something: {error}") from None
    payload = envelope.open_envelope(opened, statement.RESULT_PAYLOAD_TYPE, _finder(known))
    result = statement.parse_result(payload)
    key_id = opened.signatures[0].key_id
    statement.require_author(result.agent.key_id, key_id)
    said.append(f"the envelope is as key {key_id} signed it")
    checkpoint = log.verify_receipt(receipt, opened, trusted)
    said.append(f"entry {receipt.index} of {checkpoint.size} in the log of {checkpoint.origin}")
    since = revoked_since.get(key_id)
    if since is not None and receipt.index >= since:
        raise BadSignature(f"its key is revoked for what was logged from entry {since} on")
    return Verified(result, key_id, receipt.index, checkpoint, tuple(said))


def _key_history(
    events: list[dict[str, Any]], trusted: note.NoteKey, operator: Ed25519PublicKey
) -> tuple[dict[str, Ed25519PublicKey], dict[str, int], list[str]]:
    """Replay a key's events: each signed as it must be, and each in the log, in its order."""
    known: dict[str, Ed25519PublicKey] = {keys.key_id(operator): operator}
    since: dict[str, int] = {}
    last = -1
    for event in events:
        opened = envelope.read(strict_json.dumps(event["envelope"]))
        receipt = log.parse_proof(
            bytes.fromhex(event["receipt"]["salt"]), event["receipt"]["proof"]
        )
        log.verify_receipt(receipt, opened, trusted)
        if receipt.index <= last:
            raise BadSignature("the key's events are not in the order of the log")
        last = receipt.index
        _replay(opened, known, since)
    kinds = [acts.event_kind(base64.b64decode(e["envelope"]["payload"])) for e in events]
    return known, since, [f"the key's history holds: {', '.join(kinds)}"]


def _replay(opened: Envelope, known: dict[str, Ed25519PublicKey], since: dict[str, int]) -> None:
    kind = acts.event_kind(opened.payload)
    if kind == "revoke":
        event = acts.parse(acts.Revocation, opened.payload)
        # A key of the same owner may sign it, which only the server can tell: it is no less true.
        if opened.signatures[0].key_id in known:
            envelope.open_envelope(opened, statement.KEY_EVENT_PAYLOAD_TYPE, _finder(known))
        if event.compromised_since_log_index is not None:
            before = since.get(event.key_id, event.compromised_since_log_index)
            since[event.key_id] = min(before, event.compromised_since_log_index)
        return
    if kind == "rotate":
        rotation = acts.parse(acts.Rotation, opened.payload)
        new = statement.public_key(rotation.public_key)
        named = [rotation.supersedes, keys.key_id(new)]
    else:
        _, new = statement.parse_key_event(opened.payload)
        named = [keys.key_id(new)]
    if [signature.key_id for signature in opened.signatures] != named:
        raise BadSignature(f"the key event {kind} is not signed by the keys it names")
    known[named[-1]] = new
    envelope.open_envelope(opened, statement.KEY_EVENT_PAYLOAD_TYPE, _finder(known))


def _finder(known: dict[str, Ed25519PublicKey]) -> Callable[[str], Ed25519PublicKey]:
    def find(key_id: str) -> Ed25519PublicKey:
        if key_id not in known:
            raise UnknownKey(f"key {key_id} is not in the key history")
        return known[key_id]

    return find
