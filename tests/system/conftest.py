"""A real server and a real agent, each in its own process."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.live import running_server

from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key
from bench_agent.remote.client import Client
from bench_server.db import migrate
from bench_server.db.store import open_engine

BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        return json.loads(self.stdout)


@dataclass(frozen=True)
class Agent:
    """The agent's command line with its own home."""

    home: Path

    def environment(self, **more: str) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name != "BENCH_SERVER"}
        return {**inherited, "BENCH_HOME": str(self.home), **more}

    def __call__(self, *arguments: str, **environment: str) -> Ran:
        done = subprocess.run(
            [BIN / "bench-agent", *arguments],
            capture_output=True,
            text=True,
            timeout=240,
            env=self.environment(**environment),
        )
        return Ran(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Operator:
    """``bench-server`` as who runs the server types it, beside a server that runs."""

    database_url: str
    home: Path

    def __call__(self, *arguments: str) -> Ran:
        environment = {
            **os.environ,
            "BENCH_SERVER_DATABASE_URL": self.database_url,
            "BENCH_SERVER_KEYS_DIR": str(self.home / "server-keys"),
        }
        done = subprocess.run(
            [BIN / "bench-server", *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment,
        )
        return Ran(done.returncode, done.stdout, done.stderr)


class Server:
    """``bench-server serve`` on a free loopback port with its own database."""

    def __init__(self, folder: Path) -> None:
        self.environment = {
            **os.environ,
            "BENCH_SERVER_DATABASE_URL": f"sqlite:///{folder / 'server.db'}",
        }
        self.log = folder / "server.log"
        self.address = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self, port: int = 0) -> str:
        subprocess.run([BIN / "bench-server", "migrate"], env=self.environment, check=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [BIN / "bench-server", "serve", "--port", str(port)],
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        for line in self._process.stdout or ():
            match = re.search(r"listening on (http://\S+)", line)
            if match:
                self.address = match.group(1)
                return self.address
        raise AssertionError(f"the server did not start: {self.log.read_text()}")

    def stop(self) -> None:
        if self._process:
            self._process.send_signal(signal.SIGTERM)
            assert self._process.wait(timeout=20) in (0, -signal.SIGTERM)
            self._process = None


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path / "agent")


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[[], Server]]:
    """A server that is not started yet; always stopped at the end."""
    made: list[Server] = []

    def make() -> Server:
        made.append(Server(tmp_path))
        return made[-1]

    yield make
    for server in made:
        server.stop()


@pytest.fixture
def database(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'server.db'}"
    engine = open_engine(url)
    migrate.migrate(engine)
    engine.dispose()
    return url


@pytest.fixture
def address(database: str, tmp_path: Path) -> Iterator[str]:
    with running_server(database, tmp_path) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "agent")


@pytest.fixture
def client(address: str, home: Home) -> Iterator[Client]:
    made = Client(address, load_or_create_key(home), home)
    assert made.checkpoints is not None
    made.checkpoints.meet()
    made.checkpoints.agree("CC-BY-4.0")
    yield made
    made.close()
