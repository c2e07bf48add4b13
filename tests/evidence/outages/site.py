"""The processes of a site on one database, each of which can be killed and started again, and how
soon the server answers after a start."""

import http.client
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Protocol

from tests.fakes.live import NO_LIMITS, Program
from tests.fakes.ports import free_port
from tests.fakes.waiting import wait_for

from .program import CLOCK_FILE
from .starts import processor_seconds

ENTRY = "tests.evidence.outages.program"
POLL_SECONDS = 0.02
START_SECONDS = 60
END_SECONDS = 60
SETTINGS = NO_LIMITS | {"BENCH_SERVER_RECOMPUTE": "no"}  # a worker of its own does


class Process(Protocol):
    """A program of the site."""

    @property
    def pid(self) -> int: ...

    def is_alive(self) -> bool: ...

    def kill(self) -> None: ...

    def stop(self) -> None: ...


# Starts a program with a database's address, a folder, its arguments and settings.
Start = Callable[..., Process]


class Fresh:
    """A program in a new interpreter, as an operator starts it."""

    def __init__(self, database_url: str, home: Path, *arguments: str, **settings: str) -> None:
        environment = os.environ | {
            "BENCH_SERVER_DATABASE_URL": database_url,
            "BENCH_SERVER_KEYS_DIR": str(home / "server-keys"),
            **settings,
        }
        with (home / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", ENTRY, *arguments],
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        self.pid = self._process.pid

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """SIGTERM, and SIGKILL if it takes long, as supervisors do."""
        self._process.terminate()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()


class Forked(Program):
    """A program forked from a process that has imported the server."""

    entry = ENTRY


class Site:
    """Server, recomputation and, if it is ``apart`` from the server, projector.

    Args:
        start: starts a program.

    Attributes:
        up_seconds: from each start of the server to its first answer of 200.
        start_seconds: processor time of each start until then.
        early: status codes of the answers before; None for a refused connection.
    """

    def __init__(
        self, database_url: str, home: Path, *, apart: bool = False, start: Start = Fresh
    ) -> None:
        self.database_url, self.home, self.port = database_url, home, free_port()
        self.up_seconds: list[float] = []
        self.start_seconds: list[float] = []
        self.early: Counter[int | None] = Counter()
        self._clock_file = home / "clock"
        self._start = start
        self._arguments = {
            "server": ("serve", "--port", str(self.port)),
            "recompute": ("recompute",),
        }
        if apart:
            self._arguments["projector"] = ("project",)
        self._settings = SETTINGS | {
            "BENCH_SERVER_PROJECT": "no" if apart else "yes",
            CLOCK_FILE: str(self._clock_file),
        }
        self._watching = Event()
        self._running: dict[str, Process] = {}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def names(self) -> list[str]:
        """The programs, the server first."""
        return list(self._arguments)

    def start(self, name: str) -> None:
        """Start a program; of the server, watch in a thread when it answers."""
        arguments = self._arguments[name]
        began = time.monotonic()
        self._running[name] = self._start(
            self.database_url, self.home, *arguments, **self._settings
        )
        if name == "server":
            self._watching.set()
            self._watching = ended = Event()
            pid = self._running[name].pid
            Thread(target=self._watch, args=(pid, began, ended), daemon=True).start()

    def pid(self, name: str) -> int:
        """The process of a program."""
        return self._running[name].pid

    def is_alive(self, name: str) -> bool:
        return self._running[name].is_alive()

    def kill(self, name: str) -> None:
        """Kill a program and start it again."""
        self._running[name].kill()
        self.start(name)

    def stop(self, name: str) -> None:
        """End a program as an operator does."""
        self._running.pop(name).stop()

    def revive(self) -> None:
        """Start what has ended, as the operator's supervisor does."""
        for name in self.names:
            if not self.is_alive(name):
                self.start(name)

    def shift_clock(self, offset: timedelta) -> None:
        """Set the clocks of all programs that far from the right time."""
        self._clock_file.write_text(str(offset.total_seconds()))
        for process in self._running.values():
            os.kill(process.pid, signal.SIGUSR1)

    def wait_until_up(self) -> None:
        """Wait until the server answers.

        Raises:
            TimeoutError: it does not.
        """
        if not wait_for(lambda: self.answer() == 200, START_SECONDS, POLL_SECONDS):
            raise TimeoutError(f"the server does not answer; see {self.home / 'server.log'}")

    def answer(self) -> int | None:
        """The status code of ``/readyz``; None if there is no answer. A 503 without Retry-After
        counts as 500."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/readyz")
            response = connection.getresponse()
            response.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        asks = response.status != 503 or response.headers["Retry-After"]
        return response.status if asks else 500

    def _watch(self, pid: int, began: float, ended: Event) -> None:
        while not ended.is_set():
            if (status := self.answer()) == 200:
                if not ended.is_set():
                    self.up_seconds.append(time.monotonic() - began)
                    if (seconds := processor_seconds(pid)) is not None:
                        self.start_seconds.append(seconds)
                return
            self.early[status] += 1
            ended.wait(POLL_SECONDS)

    def close(self) -> None:
        """End all programs."""
        self._watching.set()
        for name in list(self._running):
            self.stop(name)


@contextmanager
def running(
    database_url: str, home: Path, *, apart: bool = False, start: Start = Fresh
) -> Iterator[Site]:
    """A site whose server answers, until the context ends."""
    site = Site(database_url, home, apart=apart, start=start)
    try:
        for name in site.names:
            site.start(name)
        site.wait_until_up()
        yield site
    finally:
        site.close()


def moment(chance: random.Random, least: float, most: float) -> None:
    """Let a random time pass, in seconds."""
    time.sleep(chance.uniform(least, most))
