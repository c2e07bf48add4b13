"""Results in an agent's outbox: put there, and sent."""

import os
from collections.abc import Iterable
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key
from bench_agent.remote.client import Client
from bench_agent.remote.outbox import Entry, Outbox
from bench_agent.remote.submit import submit
from bench_agent.run.sign import RunClock
from bench_agent.run.summary import RunSummary
from bench_protocol.payload.result import Agent, Result
from bench_protocol.signing.keys import key_id

from .results import clocks_of, make_result, sealed


def put(outbox: Outbox, result: Result, key: Ed25519PrivateKey | None = None) -> Entry:
    return outbox.put(result, sealed(result, key))


def outbox_with(folder: Path, most: int) -> Outbox:
    outbox = Outbox(folder / "outbox")
    for age in range(most):
        entry = put(outbox, make_result())
        os.utime(entry.path, (1_000_000 + age, 1_000_000 + age))
    return outbox


def summary_of(folder: Path, results: Iterable[Result]) -> RunSummary:
    """The outcome of a run, each result in an outbox of its own: some have a repeat twice."""
    return RunSummary(
        entries=[
            put(Outbox(folder / "outboxes" / str(number)), result)
            for number, result in enumerate(results)
        ]
    )


def put_new(home: Home, count: int = 1, client: Client | None = None) -> Outbox:
    """Sign results with the agent's key; with a client bound to a challenge, as in a run."""
    key = load_or_create_key(home)
    author = Agent(version="0.1.0", key_id=key_id(key.public_key()))
    for _ in range(count):
        made = make_result(key=key, agent=author)
        if client is not None:
            challenge, clock = client.challenge(made.run_id).challenge, RunClock()
            clocks = clocks_of(clock.started, clock.now().since_start_ns + 2)
            made = made.model_copy(update={"challenge": challenge, "nonce": None, "clocks": clocks})
        put(Outbox(home.outbox), made, key)
    return Outbox(home.outbox)


def sent(home: Home, client: Client) -> list[str]:
    return [d.answer["id"] for d in submit(client, Outbox(home.outbox))]
