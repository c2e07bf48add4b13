"""Asks: which set-ups a server wants measured again, drawn once a day.

Whether a set-up is drawn follows from the root of the log at the end of the day before, which
nobody but the server can steer: it depends on salts that the server draws. The rate depends on the
reason. Anyone can compute the draw again from the root (docs/protocol.md, Asks).
"""

import hashlib
from typing import Literal, NamedTuple

Reason = Literal["outlier", "change", "board_top", "single_owner", "sample"]
# The share of set-ups that is drawn, by the reason; the most wanted first.
RATES: dict[Reason, float] = {
    "outlier": 1.0,
    "change": 1.0,
    "board_top": 1.0,
    "single_owner": 1.0,
    "sample": 0.02,
}
REASONS: tuple[Reason, ...] = tuple(RATES)
WORDS: dict[Reason, str] = {
    "outlier": "a result is far from those of other owners",
    "change": "a machine's history changed",
    "board_top": "it leads a board",
    "single_owner": "one owner alone has measured it",
    "sample": "a random sample",
}


class HardwareSetup(NamedTuple):
    """One workload in one set-up on one hardware."""

    hardware_slug: str
    workload_digest: str
    framework: str
    device: str
    recipe: str
    batch_size: int
    precision: str
    data: str
    timing: str


def digest(root: str, setup: HardwareSetup) -> bytes:
    """SHA-256 of the root's 32 bytes and the set-up's values in UTF-8, one a line.

    Args:
        root: in hex.
    """
    text = "\n".join(str(value) for value in setup)
    return hashlib.sha256(bytes.fromhex(root) + text.encode()).digest()


def is_drawn(root: str, setup: HardwareSetup, reason: Reason) -> bool:
    """Whether the first eight bytes of the digest are below the reason's rate times 2**64."""
    return int.from_bytes(digest(root, setup)[:8]) < RATES[reason] * 2**64


def ask_id(root: str, setup: HardwareSetup) -> str:
    """32 hex digits."""
    return digest(root, setup).hex()[:32]
