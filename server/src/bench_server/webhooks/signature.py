"""Signatures of webhooks by the Standard Webhooks specification (version 1.0.0, symmetric).

A webhook's secret follows from the server's operator key and the webhook's id. No database, replica
or backup holds it.
"""

import base64
import hashlib
import hmac
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

SECRET_BYTES = 32
PREFIX = "whsec_"


def secret(operator: Ed25519PrivateKey, webhook_id: str) -> str:
    """The secret of a webhook in the specification's form: ``whsec_`` and base64 of 32 bytes."""
    derived = HKDF(SHA256(), SECRET_BYTES, None, b"trainmark webhook " + webhook_id.encode())
    key = derived.derive(operator.private_bytes_raw())
    return PREFIX + base64.b64encode(key).decode()


def headers(of_webhook: str, message_id: str, sent_at: datetime, body: bytes) -> dict[str, str]:
    """The headers of one attempt to deliver a message.

    Args:
        of_webhook: the webhook's secret.
        sent_at: the time of this attempt.
    """
    seconds = int(sent_at.timestamp())
    key = base64.b64decode(of_webhook.removeprefix(PREFIX))
    signed = b"%s.%d.%s" % (message_id.encode(), seconds, body)
    signature = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{signature}",
    }
