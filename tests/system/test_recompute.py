"""Recomputation by processes of its own: beside a server, and as a command."""

from pathlib import Path

import pytest
from sqlmodel import select
from tests.fakes import results
from tests.fakes.live import Program, running_server
from tests.fakes.outboxes import put
from tests.fakes.projected import recomputed, settled
from tests.fakes.seeding import seed_honestly
from tests.system.conftest import Agent

from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key
from bench_agent.remote.client import Client
from bench_agent.remote.outbox import Outbox
from bench_agent.run.sign import RunClock
from bench_protocol.payload.result import Agent as WireAgent
from bench_protocol.payload.result import Startup
from bench_protocol.signing.keys import key_id
from bench_server.db.store import Store
from bench_server.db.tables import RecomputeJob
from bench_server.settings import Settings


class Owner:
    def __init__(self, folder: Path, address: str, number: int) -> None:
        self.home = Home(folder / f"agent-{number}")
        self.agent, self.address, self.number = Agent(self.home.root), address, number
        assert self.agent("enroll", "--server", address).code == 0

    def send(self, step_us: int) -> str:
        """Measure under a fresh challenge and submit; the id."""
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
        return str(answer["id"])


def test_an_interrupted_command_gives_its_job_back(database: str, tmp_path: Path) -> None:
    with running_server(database, tmp_path) as address:
        identity = Owner(tmp_path, address, 1).send(1_000)
        settled(address)
        worker = Program(database, tmp_path, "recompute")
        assert worker.lines(1) == "recomputing\n"
        worker.stop()
        store = Store(database)
        with store.reading() as session:
            jobs = session.exec(select(RecomputeJob)).all()
        store.close()
        assert all(job.logged_index or job.leased_until is None for job in jobs)
        Program(database, tmp_path, "recompute", "--once").lines(1)
        assert recomputed(address, identity)["trust_level"] == 3


def test_a_server_recomputes_by_itself(database: str, tmp_path: Path) -> None:
    with running_server(database, tmp_path, BENCH_SERVER_RECOMPUTE="auto") as address:
        owner = Owner(tmp_path, address, 1)
        identity = owner.send(1_000)
        assert recomputed(address, identity)["trust_level"] == 3
        verified = owner.agent("verify", f"{address}/results/{identity}", "--recompute", "--all")
    assert verified.code == 0, verified.stderr
    assert "OK  the server signed what it recomputed of this result" in verified.stdout
    said = "recomputed: the server's recomputation of a session of mnist-dense: conformant"
    assert said in verified.stdout


@pytest.mark.parametrize(
    ("setting", "url", "starts"),
    [
        ("auto", "sqlite:///x.db", True),
        ("auto", "postgresql+psycopg://u@h/n", False),
        ("yes", "postgresql+psycopg://u@h/n", True),
        ("no", "sqlite:///x.db", False),
    ],
)
def test_where_a_server_starts_it(setting: str, url: str, starts: bool) -> None:
    assert Settings(recompute=setting, database_url=url).recomputes is starts  # type: ignore[arg-type]
