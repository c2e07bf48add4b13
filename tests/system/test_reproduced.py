"""Trust level 4 end to end: results reproduced by other owners, from enrollment to the pages."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.fakes import results
from tests.fakes.live import running_server
from tests.fakes.outboxes import put
from tests.fakes.projected import recomputed, settled
from tests.fakes.seeding import seed_honestly
from tests.system.conftest import Agent, Operator

from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key
from bench_agent.remote.client import Client
from bench_agent.remote.outbox import Outbox
from bench_agent.run.sign import RunClock
from bench_protocol.payload.result import Agent as WireAgent
from bench_protocol.payload.result import Startup
from bench_protocol.signing.keys import key_id


@pytest.fixture
def operator(database: str, tmp_path: Path) -> Operator:
    return Operator(database, tmp_path)


@pytest.fixture
def address(operator: Operator, tmp_path: Path) -> Iterator[str]:
    with running_server(operator.database_url, tmp_path, BENCH_SERVER_RECOMPUTE="yes") as running:
        yield running


class Owner:
    """A person with one machine: a real agent with an invented measurement and honest readings."""

    def __init__(self, folder: Path, address: str, number: int) -> None:
        self.home = Home(folder / f"agent-{number}")
        self.agent, self.address, self.number = Agent(self.home.root), address, number
        assert self.agent("enroll", "--server", address).code == 0

    @property
    def key_id(self) -> str:
        return key_id(load_or_create_key(self.home).public_key())

    def send(self, step_us: int, wait: bool = True) -> str:
        """Measure under a fresh challenge and submit by command; return the result's id.

        Args:
            wait: until the server has recomputed it.
        """
        key = load_or_create_key(self.home)
        client = Client(self.address, key, self.home)
        challenge, clock = client.challenge("a" * 32).challenge, RunClock()
        client.close()
        cell = results.make_cell("mnist-dense")
        startup = Startup(import_ns=10**6, data_ns=10**6, build_ns=10**6, first_step_ns=10**6)
        measured = results.make_measurement(cell, step_us * 1_000, startup=startup)
        timing_ns, took_ns = 50_000_000, 400_000_000
        window = results.make_window(measured.blocks, timing_ns)
        result = results.make_result(
            agent=WireAgent(version="0.1.0", key_id=key_id(key.public_key())),
            machine=results.make_machine(seed=self.number),
            cell=cell,
            measurement=results.with_witness(cell, measured, window=window),
            challenge=challenge,
            clocks=results.clocks_of(clock.started, took_ns),
        )
        put(Outbox(self.home.outbox), seed_honestly(result), key)
        sent = self.agent("submit", "--server", self.address, "--yes", "--json")
        assert sent.code == 0, sent.stderr
        (answer,) = sent.json()["sent"]
        identity: str = answer["id"]
        if wait:
            recomputed(self.address, identity)
        return identity


@pytest.mark.long  # tests/server/test_reproduced.py has its rules
def test_three_confirmed_owners_reproduce_each_other(
    operator: Operator, address: str, tmp_path: Path
) -> None:
    ada, basel, chiyo, dara = (Owner(tmp_path, address, number) for number in (1, 2, 3, 4))
    first, second, slower = ada.send(1_000), basel.send(1_050), chiyo.send(1_300)
    dara.send(1_020)

    def levels() -> list[int]:
        settled(address)
        rows = (httpx.get(f"{address}/api/v1/results/{i}").json() for i in (first, second, slower))
        return [row["trust_level"] for row in rows]

    def board(**filters: Any) -> list[tuple[int, int, str]]:
        answer = httpx.get(
            f"{address}/api/v1/leaderboard", params={"workload": "mnist-dense", **filters}
        )
        rows = answer.json()["rows"]
        return [(row["trust_level"], row["owners"], row["backing"]) for row in rows]

    # Conformant, plausible, fresh: but nobody vouches for anybody yet.
    assert levels() == [3, 3, 3]
    for owner, label in ((ada, "Ada"), (basel, "Basel lab"), (chiyo, "Chiyo"), (dara, "Dara")):
        assert operator("owners", "assign", owner.key_id, label).code == 0
    assert operator("owners", "confirm", "Ada").code == 0
    assert levels() == [3, 3, 3]
    # One owner cannot reproduce itself.
    again = ada.send(1_010)
    assert recomputed(address, again)["trust_level"] == 3

    assert operator("owners", "confirm", "Basel lab").code == 0
    assert levels() == [3, 3, 3]
    assert "needs 1 more owner" in httpx.get(f"{address}/results/{first}").text
    assert operator("owners", "confirm", "Dara").code == 0
    assert levels() == [4, 4, 3]
    assert "level 4" in httpx.get(f"{address}/results/{first}").text
    # Chiyo's is far from the others, whoever vouches for its owner.
    assert operator("owners", "confirm", "Chiyo").code == 0
    assert levels() == [4, 4, 3]
    # A figure has the level that more than half of its owners have.
    assert board() == board(trust_level=4) == [(4, 4, "confirmed")]
    # What comes in later is reproduced when it is recomputed.
    assert recomputed(address, basel.send(1_030))["trust_level"] == 4

    dump = tmp_path / "log.zip"
    audited = operator("verify-log", address, "--save", str(dump))
    assert audited.code == 0, audited.stdout
    assert operator("verify-log", str(dump)).stdout == audited.stdout
    assert operator("reindex").code == 0
    assert levels() == [4, 4, 3]
    assert operator("owners", "doubt", "Basel lab").code == 0
    # Ada is left with two others, who contradict each other; Basel lab has three.
    assert levels() == [3, 4, 3]
    log = json.loads(httpx.get(f"{address}/api/v1/log").text)
    # Keys, their areas, results, a recomputation of each, assigned, confirmed or doubted.
    assert log["size"] == 4 + 4 + 6 + 6 + 4 + 5
