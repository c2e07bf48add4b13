"""Results at trust level 3: under a fresh challenge, with a witness and traces that conform."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol import acts
from bench_protocol.matrix import Cell
from bench_protocol.result import Challenge, Clocks
from bench_server.db.store import Store
from bench_server.ingest import challenges
from bench_server.ingest.accept import Accepted
from bench_server.ingest.inbox import Inbox

from . import results
from .authority import AUTHORITY
from .projected import settle

BEGAN = datetime(2026, 11, 21, 4, tzinfo=UTC)
TOOK_NS = 60_000_000_000


def send(
    store: Store,
    key: Ed25519PrivateKey,
    steps_ns: Sequence[int],
    *,
    began: datetime = BEGAN,
    projected: bool = True,
    cell: Cell | None = None,
) -> list[str]:
    """Accept a run of a cell that began then, one repeat for each step time; returns the
    results' ids."""
    asked = acts.ChallengeRequest(key_id=results.key_id(key))
    challenge = challenges.give(acts.payload(asked), store, AUTHORITY, began, 24)
    cell = cell or results.make_cell()
    finished = began + timedelta(seconds=TOOK_NS / 1e9)
    began, ended = (at.strftime("%Y-%m-%dT%H:%M:%S.%fZ") for at in (began, finished))
    bound = Challenge(id=challenge.id, nonce=challenge.nonce, server_origin=challenge.server_origin)
    clocks = Clocks(
        run_started=began, started=began, finished=ended, signed=ended,
        started_ns=0, finished_ns=TOOK_NS, signed_ns=TOOK_NS,
    )  # fmt: skip
    made = [
        results.make_result(
            key=key,
            cell=cell,
            run_id=challenge.id,
            repeat=repeat,
            challenge=bound,
            clocks=clocks,
            measurement=results.make_measurement(cell, step_ns),
            witness=True,
        )
        for repeat, step_ns in enumerate(steps_ns, 1)
    ]
    raws = [results.sealed(result, key) for result in made]
    answers = [waiting.result(30) for waiting in Inbox(store, AUTHORITY).accept(raws, finished)]
    assert all(isinstance(answer, Accepted) for answer in answers), answers
    if projected:
        settle(store)
    return [answer.id for answer in answers if isinstance(answer, Accepted)]
