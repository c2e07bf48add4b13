"""A backup, three more results, a restore, and the statement of the loss, with real agents."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
from tests.fakes.live import run, running_server
from tests.fakes.outboxes import put_new, sent
from tests.fakes.ports import free_port
from typer.testing import CliRunner

from bench_agent.base.errors import LogContradiction
from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key
from bench_agent.remote.client import Client
from bench_agent.remote.outbox import Outbox
from bench_server.cli.main import main as cli


class Agent:
    def __init__(self, folder: Path, address: str) -> None:
        self.home, self.said = Home(folder), list[str]()
        key = load_or_create_key(self.home)
        self.client = Client(address, key, self.home, say=self.said.append)
        assert self.client.checkpoints is not None
        self.memory = self.client.checkpoints
        self.memory.meet()
        self.memory.agree("CC-BY-4.0")

    def post(self, count: int) -> list[str]:
        put_new(self.home, count)
        return sent(self.home, self.client)


def test_acknowledged_results_come_back_after_a_restore(
    database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    keys = {"BENCH_SERVER_KEYS_DIR": str(tmp_path / "server-keys")}

    def operator(url: str, *arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(cli, [*arguments, "--database-url", url], env=keys)
        assert done.exit_code == code, done.output
        return done.output

    @contextmanager
    def serving(url: str) -> Iterator[None]:
        with running_server(url, tmp_path, port=port):
            yield

    copy = str(tmp_path / "backup.db")
    with serving(database_url):
        before, both, after = (Agent(tmp_path / name, address) for name in ("a", "b", "c"))
        before.post(1)
        both.post(1)
        operator(database_url, "backup", copy)
        lost = [*both.post(2), *after.post(1)]
    with closing(sqlite3.connect(copy)) as backup:
        ((size,),) = backup.execute("SELECT count(*) FROM log_entry")
    operator(empty_database_url, "migrate")
    operator(empty_database_url, "restore", copy)
    with serving(empty_database_url):
        before.memory.meet()
        with pytest.raises(LogContradiction, match="bench-server state-break"):
            both.memory.meet()
    assert "--reason is a text" in operator(
        empty_database_url, "state-break", "--reason", "a\nb", code=2
    )
    assert f"signed no checkpoint of 99 entries; a smaller one has {size}" in operator(
        empty_database_url, "state-break", "--reason", "a", "--kept", "99", code=2
    )
    stated = operator(empty_database_url, "state-break", "--reason", "The <disk> failed")
    assert stated == f"stated: the log keeps {size} entries; see the page /log\n"
    with serving(empty_database_url):
        page = httpx.get(f"{address}/log").text
        assert "The &lt;disk&gt; failed" in page
        assert 'href="#breaks"' in page.partition("<h2")[0]
        (shown,) = httpx.get(f"{address}/api/v1/log").json()["breaks"]
        assert shown["kept_size"] == size
        before.post(1)
        gone = next(iter(Outbox(after.home.outbox).sent()))
        environment = os.environ | {"BENCH_HOME": str(after.home.root)}
        program = "tests.fakes.agent_program"
        verified = run(program, ("verify", str(gone.path)), environment)
        assert verified.code == 1
        assert f"lost every entry from number {size} on" in verified.stderr
        assert "no log has it" in verified.stderr
        again = run(program, ("submit", "--server", address), environment)
        assert again.stdout.startswith("1 sent, 0 refused"), again.stderr
        assert not before.said
        both.memory.meet()
        assert "2 results of this machine went with them" in both.said[0]
        sent(both.home, both.client)
        for identity in lost:
            assert httpx.get(f"{address}/api/v1/results/{identity}?wait=10").status_code == 200
    verified = operator(empty_database_url, "verify-log")
    assert f"lost: every entry from {size} on, stated 20" in verified
    assert "UTC: The <disk> failed\n" in verified
