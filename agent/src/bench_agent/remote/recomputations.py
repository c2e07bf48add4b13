"""Verify a server's recomputations of the seeded jobs of a result: signature, log, subject."""

from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bench_protocol.base import strict_json
from bench_protocol.base.errors import InvalidProof
from bench_protocol.payload.result import Result
from bench_protocol.signing import envelope, note, receipts
from bench_protocol.training import recomputation
from bench_protocol.training.recomputation import RECOMPUTATION_PAYLOAD_TYPE, Recomputation

from .log_receipts import parse_receipt

# From this trust level on the server's recomputation must agree.
RECOMPUTED_LEVEL = 3


def verified(
    document: Mapping[str, Any], result: Result, trusted: note.NoteKey, signer: Ed25519PublicKey
) -> tuple[tuple[Recomputation, ...], str]:
    """Check recomputations: each is signed by the server, logged, and of a job of this result.

    Args:
        document: an answer of ``GET /api/v1/results/{id}/recomputations`` that is not empty.
        signer: the server's challenge key.

    Returns:
        The recomputations, one at least, and a sentence about them.

    Raises:
        ProtocolError: a recomputation does not hold; it says which and why.
        KeyError, TypeError, ValueError: the document is malformed.
    """
    stated, entries = [], []
    for sealed, proof in zip(document["recomputations"], document["receipts"], strict=True):
        opened = envelope.read(strict_json.dumps(sealed))
        payload = envelope.open_envelope(opened, RECOMPUTATION_PAYLOAD_TYPE, lambda _: signer)
        said = recomputation.parse(payload)
        recomputation.require_about(said, result)
        receipt = parse_receipt(proof)
        if receipts.verify_receipt(receipt, opened, trusted).origin != said.server_origin:
            raise InvalidProof("a recomputation is of another server", field="server_origin")
        stated.append(said)
        entries.append(str(receipt.index))
    places = f"log entr{'y' if len(entries) == 1 else 'ies'} {', '.join(entries)}"
    return tuple(stated), f"the server signed what it recomputed of this result ({places})"


def require_level(stated: tuple[Recomputation, ...], result: Result, level: int | None) -> None:
    """Raise ``InvalidProof`` unless the server's recomputations give the trust level that it shows.
    A session on real data or with pretrained weights needs none: its wide range is in the level."""
    if level is None or level < RECOMPUTED_LEVEL:
        return
    known = {said.key: said for said in stated if said.figures is not None}
    if not recomputation.session_is_generated(result) and not stated:
        return
    found = recomputation.verdict(result, known, result.machine.cpu.architecture)
    why = "nothing about its session" if found is None else found.sentence
    if found is None or found.kind != "conformant":
        raise InvalidProof(
            f"the server shows trust level {level}, but what it recomputed does not give it: {why}",
            field="judged.trust_level",
        )
