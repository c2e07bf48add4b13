"""Results in an agent's outbox."""

import os
from collections.abc import Iterable
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_agent.remote.outbox import Entry, Outbox
from bench_agent.run.summary import RunSummary
from bench_protocol.payload.result import Result

from .results import make_result, sealed


def put(outbox: Outbox, result: Result, key: Ed25519PrivateKey | None = None) -> Entry:
    """Sign a result and put its envelope into an outbox."""
    return outbox.put(result, sealed(result, key))


def outbox_with(folder: Path, most: int) -> Outbox:
    """An outbox with results of the test key, each a second younger than the one before."""
    outbox = Outbox(folder / "outbox")
    for age in range(most):
        entry = put(outbox, make_result())
        os.utime(entry.path, (1_000_000 + age, 1_000_000 + age))
    return outbox


def summary_of(folder: Path, results: Iterable[Result]) -> RunSummary:
    """The outcome of a run with these results, each in an outbox of its own: some tests have a
    repeat twice."""
    return RunSummary(
        entries=[
            put(Outbox(folder / "outboxes" / str(number)), result)
            for number, result in enumerate(results)
        ]
    )
