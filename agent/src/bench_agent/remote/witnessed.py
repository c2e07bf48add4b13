"""The witnessed speeds of a result's machine, each verified: signature, derivation, log entry."""

from collections.abc import Set
from typing import Any

from bench_protocol.base import strict_json
from bench_protocol.base.errors import BadSignature, InvalidProof
from bench_protocol.payload import statement
from bench_protocol.signing import envelope, note, receipts
from bench_protocol.training import speed_run

from .log_receipts import parse_receipt
from .verify import Read


def sentences(result_id: str, key_ids: Set[str], read: Read, log: dict[str, Any]) -> list[str]:
    """What the server states about the machine, a sentence each.

    Args:
        key_ids: the keys of the rotations whose machine it is.
        log: the server's log document, whose key is trusted.

    Raises:
        ProtocolError: a statement does not hold.
    """
    machine = read(f"/api/v1/results/{result_id}").get("machine_id")
    if machine is None:
        return []
    page = read(f"/api/v1/speed-runs?machine={machine}")
    trusted = note.parse_key(log["key"])
    signer = statement.public_key(log["challenge_key"])
    said = []
    for sealed, document in zip(page["statements"], page["receipts"], strict=True):
        opened = envelope.read(strict_json.dumps(sealed))
        payload = envelope.open_envelope(opened, speed_run.STATEMENT_PAYLOAD_TYPE, lambda _: signer)
        speed = speed_run.parse(payload)
        if speed.key_id not in key_ids:
            raise BadSignature(f"a witnessed speed is of another key, {speed.key_id}")
        receipt = parse_receipt(document)
        if receipts.verify_receipt(receipt, opened, trusted).origin != speed.server_origin:
            raise InvalidProof("a witnessed speed is of another server", field="server_origin")
        said.append(f"{speed.sentence} (entry {receipt.index})")
    return said
