"""Verify a key's history in a log: each entry is in the log, in order, and signed by an authorised
key. The rules are those of a server (docs/protocol.md, Revocation), so a server cannot show a
history that it should have refused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bench_protocol.base import strict_json
from bench_protocol.base.errors import BadSignature, UnknownKey
from bench_protocol.payload import acts, statement
from bench_protocol.signing import envelope, keys, note, receipts
from bench_protocol.signing.envelope import Envelope

from .log_receipts import parse_receipt


@dataclass
class KeyHistory:
    """State of the keys after the entries so far, by key id. ``owners``: the owner of each.
    ``ended``: the entry that rotated or revoked it. ``compromised_since``: its results from this
    entry on do not count. ``kinds``: the kinds of the entries.
    """

    operator: Ed25519PublicKey
    public_keys: dict[str, Ed25519PublicKey] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)
    compromised_since: dict[str, int] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=list)

    def find(self, key_id: str) -> Ed25519PublicKey:
        """The public key of an id. Raises UnknownKey if no entry enrolled it."""
        return among(self.public_keys)(key_id)

    def require_counting(self, key_id: str, index: int) -> None:
        """Raise ``BadSignature`` where the key of a result at ``index`` had ended before, or its
        results from there on do not count."""
        since = self.compromised_since.get(key_id)
        if since is not None and index >= since:
            raise BadSignature(f"its key is revoked for what was logged from entry {since} on")
        ended = self.ended.get(key_id)
        if ended is not None and index > ended:
            raise BadSignature(f"its key ended with entry {ended}, and this is entry {index}")

    def apply(self, opened: Envelope, index: int) -> None:
        """Apply the next entry.

        Raises:
            ProtocolError: its signers are not authorised for this event.
        """
        if opened.payload_type == acts.ACT_PAYLOAD_TYPE:
            self._decided(opened)
            return
        kind = acts.event_kind(opened.payload)
        self.kinds.append(kind)
        if kind == "revoke":
            self._revoked(opened, index)
        elif kind == "rotate":
            self._rotated(opened, index)
        else:
            _, new = statement.parse_key_event(opened.payload)
            self._take(opened, new, [keys.key_id(new)])
            self.owners[keys.key_id(new)] = acts.first_owner(keys.key_id(new))

    def _take(self, opened: Envelope, new: Ed25519PublicKey, signers: list[str]) -> None:
        if [signature.key_id for signature in opened.signatures] != signers:
            raise BadSignature("a key event is not signed by the keys it names")
        envelope.open_envelope(
            opened,
            statement.KEY_EVENT_PAYLOAD_TYPE,
            among({**self.public_keys, keys.key_id(new): new}),
        )
        self.public_keys[keys.key_id(new)] = new

    def _rotated(self, opened: Envelope, index: int) -> None:
        event = acts.Rotation.parse(opened.payload)
        new = statement.public_key(event.public_key)
        self._require_active(event.supersedes)
        self._take(opened, new, [event.supersedes, keys.key_id(new)])
        self.ended[event.supersedes] = index
        self.owners[keys.key_id(new)] = self.owners[event.supersedes]

    def _revoked(self, opened: Envelope, index: int) -> None:
        event = acts.Revocation.parse(opened.payload)
        signer = self._only_signer(opened, statement.KEY_EVENT_PAYLOAD_TYPE)
        if signer not in (event.key_id, keys.key_id(self.operator)):
            self._require_active(signer)
            if self.owners[signer] != self.owners.get(event.key_id):
                raise BadSignature(f"key {signer} may not revoke a key of another owner")
        self.ended.setdefault(event.key_id, index)
        since = event.compromised_since_log_index
        if since is not None:
            before = self.compromised_since.get(event.key_id, since)
            self.compromised_since[event.key_id] = min(before, since)

    def _decided(self, opened: Envelope) -> None:
        act = acts.Act.parse(opened.payload)
        self.kinds.append(act.act)
        if self._only_signer(opened, acts.ACT_PAYLOAD_TYPE) != keys.key_id(self.operator):
            raise BadSignature(f"{act.act} is for the operator")
        if act.act == "assign" and act.key and act.owner:
            self.owners[act.key] = act.owner

    def _only_signer(self, opened: Envelope, payload_type: str) -> str:
        if len(opened.signatures) != 1:
            raise BadSignature("an act or a revocation has exactly one signature")
        everyone = {**self.public_keys, keys.key_id(self.operator): self.operator}
        envelope.open_envelope(opened, payload_type, among(everyone))
        return opened.signatures[0].key_id

    def _require_active(self, key_id: str) -> None:
        self.find(key_id)
        if key_id in self.ended:
            raise BadSignature(f"key {key_id} ended with entry {self.ended[key_id]}")


def replay(
    events: Sequence[dict[str, Any]], trusted: note.NoteKey, operator: Ed25519PublicKey
) -> KeyHistory:
    """Replay a key's history, the ``events`` of ``GET /api/v1/keys/{id}``.

    Raises:
        ProtocolError: an entry is not in the log, out of order, or not signed by an authorised key.
        KeyError, TypeError, ValueError: the events are malformed.
    """
    history = KeyHistory(operator)
    last = -1
    for event in events:
        opened = envelope.read(strict_json.dumps(event["envelope"]))
        receipt = parse_receipt(event["receipt"])
        receipts.verify_receipt(receipt, opened, trusted)
        if receipt.index <= last:
            raise BadSignature("the key's events are not in the order of the log")
        last = receipt.index
        history.apply(opened, receipt.index)
    return history


def among(public_keys: Mapping[str, Ed25519PublicKey]) -> Callable[[str], Ed25519PublicKey]:
    """A look-up function over these keys; it raises UnknownKey for any other."""

    def find(key_id: str) -> Ed25519PublicKey:
        if key_id not in public_keys:
            raise UnknownKey(f"key {key_id} is not in the key history")
        return public_keys[key_id]

    return find
