"""Results in an agent's outbox."""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_agent.remote.outbox import Entry, Outbox
from bench_protocol.result import Result

from .results import sealed


def put(outbox: Outbox, result: Result, key: Ed25519PrivateKey | None = None) -> Entry:
    """Sign a result and put its envelope into an outbox."""
    return outbox.put(result, sealed(result, key))
