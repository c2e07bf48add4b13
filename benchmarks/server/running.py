"""The real server and real databases, as an operator runs them, on loopback."""

import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from tests.fakes import postgres

START_SECONDS = 60
MAIN = "from bench_server.cli import main; main()"


@dataclass(frozen=True)
class Running:
    """A server that answers at ``address``."""

    address: str
    process: subprocess.Popen[str]

    def resident_bytes(self) -> int:
        """Resident set of the server and its workers."""
        return sum(process.memory_info().rss for process in self._processes())

    def cpu_seconds(self) -> float:
        """Processor time that the server and its workers have used; not the database's own."""
        times = [process.cpu_times() for process in self._processes()]
        return sum(time.user + time.system for time in times)

    def _processes(self) -> list[psutil.Process]:
        whole = psutil.Process(self.process.pid)
        return [whole, *whole.children(recursive=True)]


@contextmanager
def server(database_url: str, keys: Path, workers: int = 1) -> Iterator[Running]:
    """Serve a migrated database with everything on but the rate limits."""
    environment = os.environ | {
        "BENCH_SERVER_DATABASE_URL": database_url,
        "BENCH_SERVER_KEYS_DIR": str(keys),
        "BENCH_SERVER_ADDRESS_RATE": "off",
        "BENCH_SERVER_KEY_RATE": "off",
        "BENCH_SERVER_WORKERS": str(workers),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "serve", "--port", "0"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
        line = process.stdout.readline() if ready else ""
        if not line.startswith("listening on "):
            raise RuntimeError(f"the server did not start: {line!r}")
        yield Running(line.split()[-1], process)
    finally:
        process.terminate()
        process.wait(timeout=30)


@contextmanager
def databases(kinds: list[str]) -> Iterator["Databases"]:
    """Empty databases on request: SQLite files in a temporary folder, one durable PostgreSQL."""
    cluster = postgres.start(durable=True) if "postgresql" in kinds else None
    with tempfile.TemporaryDirectory(prefix="trainmark-benchmark-") as folder:
        try:
            yield Databases(Path(folder), cluster)
        finally:
            if cluster:
                cluster.stop()


@dataclass
class Databases:
    """Makes databases, each with a folder of its own for the server's keys."""

    folder: Path
    cluster: postgres.Cluster | None
    made: int = 0

    def new(self, kind: str) -> tuple[str, Path]:
        """Address of an empty database, and a folder."""
        self.made += 1
        name = f"benchmark_{self.made}"
        place = self.folder / name
        place.mkdir()
        if kind == "sqlite":
            return f"sqlite:///{place / 'server.db'}", place
        assert self.cluster is not None
        self.cluster.create(name)
        return self.cluster.url(name), place
