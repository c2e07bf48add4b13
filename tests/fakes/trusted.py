"""Results at trust level 3: under a fresh challenge, with a witness and traces that conform."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload.result import Challenge, Result
from bench_server.db.store import Store
from bench_server.ingest import challenges
from bench_server.ingest.accept import Accepted
from bench_server.ingest.inbox import Inbox
from bench_server.log.server_keys import Authority

from . import results
from .authority import AUTHORITY
from .projected import settle

BEGAN = datetime(2026, 11, 21, 4, tzinfo=UTC)
TOOK_NS = 60_000_000_000
TOOK = timedelta(seconds=TOOK_NS / 1e9)


def challenge_of(
    store: Store, key: Ed25519PrivateKey, at: datetime, authority: Authority = AUTHORITY
) -> Challenge:
    asked = results.challenge_request(key, authority.origin)
    given = challenges.give(asked, store, authority, at, 24)
    return Challenge(id=given.id, nonce=given.nonce, server_origin=given.server_origin)


def send(
    store: Store,
    key: Ed25519PrivateKey,
    steps_ns: Sequence[int],
    *,
    began: datetime = BEGAN,
    projected: bool = True,
    cell: Cell | None = None,
    changed: Callable[[Result], Result] = lambda result: result,
) -> list[str]:
    """Accept a run, one repeat a step time; ``changed``: what is sent instead of a result."""
    challenge = challenge_of(store, key, began)
    sent = map(changed, made(key, steps_ns, challenge, began=began, cell=cell))
    raws = [results.sealed(result, key) for result in sent]
    waiting = Inbox(store, AUTHORITY).accept(raws, began + TOOK)
    answers = [one.result(30) for one in waiting]
    assert all(isinstance(answer, Accepted) for answer in answers), answers
    if projected:
        settle(store)
    return [answer.id for answer in answers if isinstance(answer, Accepted)]


def made(
    key: Ed25519PrivateKey,
    steps_ns: Sequence[int],
    challenge: Challenge,
    *,
    began: datetime = BEGAN,
    cell: Cell | None = None,
    **overrides: Any,
) -> list[Result]:
    cell = cell or results.make_cell()
    clocks = results.clocks_of(began, TOOK_NS)
    return [
        results.make_result(
            key=key,
            cell=cell,
            run_id=challenge.id,
            repeat=repeat,
            challenge=challenge,
            clocks=clocks,
            measurement=results.make_measurement(cell, step_ns),
            **overrides,
        )
        for repeat, step_ns in enumerate(steps_ns, 1)
    ]
