"""Seeds that follow from a nonce: nobody can compute losses before the nonce is known.

A trace takes starting weights, order and data from its seed, a timed session weights and order. The
nonce is the challenge's. Without a challenge the agent draws one, and the result is *self-seeded*.
"""

import hashlib
from typing import Literal

Purpose = Literal["sgd", "workload", "long", "timed"]
"""What is seeded: the short trace under SGD, the one under the workload's optimiser, the long trace
or the session."""
PURPOSES: tuple[Purpose, ...] = ("sgd", "workload", "long", "timed")


def seed_of(nonce: str, workload_digest: str, purpose: Purpose) -> str:
    """The seed of one training: the first 32 hex digits of
    ``SHA-256("trainmark/trace/v2/" nonce "/" workload_digest "/" purpose)``.

    Args:
        nonce: 64 hex digits, lower case.
        workload_digest: of the workload's definition, lower-case hex.
    """
    text = f"trainmark/trace/v2/{nonce}/{workload_digest}/{purpose}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]
