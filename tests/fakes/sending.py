"""Results of a real agent's key: put into its outbox, and sent."""

from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key
from bench_agent.remote.client import Client
from bench_agent.remote.outbox import Outbox
from bench_agent.remote.submit import submit
from bench_agent.run.sign import RunClock
from bench_protocol.payload.result import Agent, Clocks
from bench_protocol.signing.keys import key_id

from . import outboxes, results


def put(home: Home, count: int = 1, client: Client | None = None) -> None:
    """Results signed by the agent's key; with a client bound to a challenge, as a run does it."""
    key = load_or_create_key(home)
    author = Agent(version="0.1.0", key_id=key_id(key.public_key()))
    for _ in range(count):
        made = results.make_result(key=key, agent=author)
        if client is not None:
            challenge, clock = client.challenge().challenge, RunClock()
            now, at = clock.now(), clock.started.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            end = now.since_start_ns + 2
            clocks = Clocks(
                run_started=at, started=at, signed=at,
                started_ns=0, finished_ns=end, signed_ns=end,
            )  # fmt: skip
            made = made.model_copy(update={"challenge": challenge, "nonce": None, "clocks": clocks})
        outboxes.put(Outbox(home.outbox), made, key)


def sent(home: Home, client: Client) -> list[str]:
    """Send the outbox; the results' ids."""
    return [d.answer["id"] for d in submit(client, Outbox(home.outbox))]
