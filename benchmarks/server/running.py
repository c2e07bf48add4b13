"""The real server, as an operator runs it, on loopback, and what it needs under a load."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from select import select
from threading import Event, Thread
from typing import NamedTuple

import psutil
from tests.fakes.live import NO_LIMITS

from .load import Load

START_SECONDS = 60
SAMPLE_SECONDS = 0.2
MAIN = "from bench_server.cli.main import main; main()"


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

    def while_under(self, load: Callable[[], Load]) -> "Use":
        """Put the server under a load and watch it."""
        cpu_before, highest, ended = self.cpu_seconds(), [self.resident_bytes()], Event()

        def watch() -> None:
            while not ended.wait(SAMPLE_SECONDS):
                highest.append(self.resident_bytes())

        watching = Thread(target=watch)
        watching.start()
        try:
            found = load()
        finally:
            ended.set()
            watching.join()
        return Use(found, self.cpu_seconds() - cpu_before, max(highest) / 2**20)

    def _processes(self) -> list[psutil.Process]:
        whole = psutil.Process(self.process.pid)
        return [whole, *whole.children(recursive=True)]


class Use(NamedTuple):
    """What a load came to, and what the server's processes needed for it."""

    load: Load
    cpu_seconds: float
    resident_mib: float


@contextmanager
def server(database_url: str, keys: Path, workers: int = 1) -> Iterator[Running]:
    """Serve a migrated database with everything on but the rate limits."""
    environment = (
        os.environ
        | NO_LIMITS
        | {
            "BENCH_SERVER_DATABASE_URL": database_url,
            "BENCH_SERVER_KEYS_DIR": str(keys),
            "BENCH_SERVER_WORKERS": str(workers),
        }
    )
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "serve", "--port", "0"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield Running(_address(process.stdout.fileno()), process)
    finally:
        process.terminate()
        process.wait(timeout=30)


def _address(output: int) -> str:
    """Where the server listens, as it prints to this file descriptor."""
    lines = ""
    while select([output], [], [], START_SECONDS)[0] and (read := os.read(output, 4096)):
        lines += read.decode()
        if found := re.search(r"^listening on (\S+)\n", lines, re.MULTILINE):
            return found.group(1)
    raise RuntimeError(f"the server did not start: {lines!r}")
