"""Recomputation by processes of its own: beside a server, and as a command."""

from pathlib import Path

import httpx
import pytest
from sqlmodel import select
from tests.fakes.live import Program, running_server
from tests.fakes.projected import recomputed, settled
from tests.system.test_reproduced import Owner

from bench_server.db.store import Store
from bench_server.db.tables import LogEntry, RecomputeJob
from bench_server.settings import Settings


def recomputations(database: str) -> int:
    store = Store(database)
    with store.reading() as session:
        kinds = session.exec(select(LogEntry.kind)).all()
    store.close()
    return kinds.count("recomputation")


def test_several_commands_share_the_queue(database: str, tmp_path: Path) -> None:
    with running_server(database, tmp_path) as address:
        sent = [Owner(tmp_path, address, number).send(1_000, wait=False) for number in (1, 2)]
        settled(address)
        shown = [httpx.get(f"{address}/api/v1/results/{one}").json() for one in sent]
        assert [one["trust_level"] for one in shown] == [2, 2]
        workers = [Program(database, tmp_path, "recompute", "--once") for _ in range(2)]
        counts = [int(worker.lines(1).split()[0]) for worker in workers]
        for worker in workers:
            worker.stop()
        assert sum(counts) == recomputations(database) == 2
        assert [recomputed(address, one)["trust_level"] for one in sent] == [3, 3]


def test_an_interrupted_command_gives_its_job_back(database: str, tmp_path: Path) -> None:
    with running_server(database, tmp_path) as address:
        identity = Owner(tmp_path, address, 1).send(1_000, wait=False)
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
