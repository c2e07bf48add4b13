"""The seed of a session: nobody can compute its losses before its nonce is known.

A session takes starting weights, orders and the parts of its readings from its seed. The nonce is
the challenge's. Without a challenge the agent draws one, and the result is *self-seeded*.
"""

import hashlib


def seed_of(nonce: str, workload_digest: str) -> str:
    """The seed of a session: the first 32 hex digits of
    ``SHA-256("trainmark/session/v1/" nonce "/" workload_digest)``.

    Args:
        nonce: 64 hex digits, lower case.
        workload_digest: of the workload's definition, lower-case hex.
    """
    text = f"trainmark/session/v1/{nonce}/{workload_digest}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]
