"""Receipts in a server's answers."""

from typing import Any

from bench_protocol.base.errors import InvalidProof, ProtocolError
from bench_protocol.signing import receipts
from bench_protocol.signing.receipts import Receipt


def parse_receipt(document: Any) -> Receipt:
    """Read a receipt from a server's answer.

    Raises:
        InvalidProof: the document is no receipt.
    """
    try:
        return receipts.parse_proof(bytes.fromhex(document["salt"]), document["proof"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, ProtocolError):
            raise
        raise InvalidProof(f"the receipt lacks something: {error}", field="receipt") from None
