"""A real server and a real agent, each in its own process."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fakes.live import Program, Ran, run, running_server

from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key
from bench_agent.remote.client import Client

BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Agent:
    home: Path

    def environment(self, **more: str) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name != "BENCH_SERVER"}
        return {**inherited, "BENCH_HOME": str(self.home), **more}

    def __call__(self, *arguments: str, **environment: str) -> Ran:
        return run("tests.fakes.agent_program", arguments, self.environment(**environment))


@dataclass(frozen=True)
class Operator:
    database_url: str
    home: Path

    def __call__(self, *arguments: str) -> Ran:
        environment = {
            **os.environ,
            "BENCH_SERVER_DATABASE_URL": self.database_url,
            "BENCH_SERVER_KEYS_DIR": str(self.home / "server-keys"),
        }
        return run("bench_server.cli.main", arguments, environment)


class Server:
    def __init__(self, folder: Path, migrated_file: Path) -> None:
        self._folder = folder
        database = shutil.copy(migrated_file, folder / "server.db")
        self.environment = {
            **os.environ,
            "BENCH_SERVER_DATABASE_URL": f"sqlite:///{database}",
            "BENCH_SERVER_RECOMPUTE": "auto",
        }
        self._process: Program | None = None

    def start(self, port: int = 0) -> str:
        serve = ("serve", "--port", str(port))
        self._process = Program("", self._folder, *serve, **self.environment)
        return self._process.address()

    def stop(self) -> None:
        if self._process:
            self._process.stop()
            self._process = None


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path / "agent")


@pytest.fixture
def make_server(tmp_path: Path, migrated_file: Path) -> Iterator[Callable[[], Server]]:
    made: list[Server] = []

    def make() -> Server:
        made.append(Server(tmp_path, migrated_file))
        return made[-1]

    yield make
    for server in made:
        server.stop()


@pytest.fixture
def database(tmp_path: Path, migrated_file: Path) -> str:
    return f"sqlite:///{shutil.copy(migrated_file, tmp_path / 'server.db')}"


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
