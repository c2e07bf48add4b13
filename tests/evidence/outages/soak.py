"""``make test-soak``: half an hour of mixed load; is the memory of server and agent flat?

Agents post, readers open pages and ask questions of the API, and one agent measures and submits in
one long run. The end is a table of resident memory by minute and the growth over the second half.
Exit code 1 if it is more than ``MOST_GROWTH`` of the memory, if an answer is an error, or if a
result is lost or doubled. ``MINUTES`` (30) is the length.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import linear_regression, median
from threading import Event, Thread

import httpx
import psutil
from tests.fakes import results
from tests.fakes.client import Poster

from bench_protocol.base import format as people
from bench_server.db.store import Store

from . import agents, site
from .databases import KINDS, database
from .verdict import judge, settle

DEFAULT_MINUTES = 30
LEAST_MINUTES = 4
SAMPLE_SECONDS = 5.0
POSTERS = 4
READERS = 2
RANKED_MACHINES = 20
FIRST_KEY = 201  # agents have those before
MOST_GROWTH = 0.05
READ_PAUSE_SECONDS = 0.4
PATHS = (
    *("/", "/results", "/machines", "/hardware", "/log", "/frameworks", "/trends", "/docs"),
    *("/api/v1/leaderboard", "/api/v1/results", "/api/v1/machines", "/api/v1/export.csv"),
    *("/api/v1/results?limit=100", "/feed.atom", "/metrics", "/checkpoint", "/api/v1/workloads"),
)


@dataclass(frozen=True)
class Minute:
    """Medians of resident memory in a minute, in MiB, and counts since the start."""

    server_mib: float
    agent_mib: float
    results: int
    answers: int


class Readers:
    """Threads that read pages and ask questions; ``statuses`` counts the answers."""

    def __init__(self, address: str) -> None:
        self.statuses: Counter[int] = Counter()
        self._stopped = Event()
        self._threads = [Thread(target=self._read, args=(address,)) for _ in range(READERS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _read(self, address: str) -> None:
        with httpx.Client(base_url=address, timeout=60) as http:
            while not self._stopped.wait(random.uniform(0, 2 * READ_PAUSE_SECONDS)):
                self.statuses[http.get(self._path(http)).status_code] += 1

    def _path(self, http: httpx.Client) -> str:
        """A page, a list, or one of the newest results or their machines."""
        if random.random() < 0.6:
            return random.choice(PATHS)
        rows = http.get("/api/v1/results", params=random.choice([{}, {"ranked": "true"}])).json()
        row = random.choice(rows["results"])
        pages = [f"results/{row['id']}"]
        if row["ranked"]:
            pages += [f"machines/{row['machine_id']}", f"hardware/{row['hardware_slug']}"]
        return random.choice(["/", "/api/v1/"]) + random.choice(pages)


def fill_boards(address: str, database_url: str) -> None:
    """Post results that are ranked once they are recomputed; those of the agents are not, because
    their challenges are younger than their timings are long."""
    store = Store(database_url)
    with httpx.Client(base_url=address, timeout=60) as http:
        post = Poster(http, store)
        for number in range(RANKED_MACHINES):
            key = results.private_key(FIRST_KEY + number)
            post.enroll(key)
            for step_ns in (1_000_000, 1_010_000, 1_020_000):
                machine = results.make_machine(seed=FIRST_KEY + number)
                post.made(key=key, machine=machine, step_ns=step_ns + 1000 * number)
    store.close()


@contextmanager
def measuring_agent(home: Path, address: str) -> Iterator[psutil.Process]:
    """The process of one long run, until the context ends."""
    command = [sys.executable, "-m", "tests.evidence.outages.long_run", str(home), address]
    with (home.parent / "agent.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)


def watched(
    minutes: int, server: psutil.Process, agent: psutil.Process, counts: "Counts"
) -> Iterator[Minute]:
    """Memory and counts of each minute, as it ends."""
    for number in range(1, minutes + 1):
        samples = []
        end = time.monotonic() + 60
        while time.monotonic() < end:
            time.sleep(SAMPLE_SECONDS)
            samples.append((_mib(server), _mib(agent)))
        of_server, of_agent = zip(*samples, strict=True)
        minute = Minute(median(of_server), median(of_agent), *counts())
        left = minutes - number
        row = people.markdown_row(_cells(number, minute))
        print(f"{row} {left} min left", file=sys.stderr, flush=True)
        yield minute


@dataclass(frozen=True)
class Counts:
    """How many results were acknowledged and requests answered so far."""

    posting: Sequence[agents.Agent]
    readers: Readers

    def __call__(self) -> tuple[int, int]:
        return agents.acknowledged(self.posting), self.readers.statuses.total()


def growth(values: Sequence[float]) -> float:
    """Growth over the second half: the least-squares slope times its length, as a share of its
    median."""
    half = values[len(values) // 2 :]
    slope = linear_regression(range(len(half)), half).slope
    return slope * (len(half) - 1) / median(half)


def table(minutes: Sequence[Minute]) -> str:
    """The minutes in Markdown."""
    heads = ("minute", "server, MiB", "agent, MiB", "results acknowledged", "requests answered")
    return people.markdown(heads, (_cells(number, made) for number, made in enumerate(minutes, 1)))


def _cells(number: int, minute: Minute) -> tuple[str, ...]:
    memory = (f"{minute.server_mib:.1f}", f"{minute.agent_mib:.1f}")
    return (str(number), *memory, f"{minute.results:,}", f"{minute.answers:,}")


def _mib(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / 2**20


def soak(kind: str, minutes: int) -> int:
    """Run the load and print the table.

    Returns:
        The exit code.
    """
    with (
        tempfile.TemporaryDirectory(prefix="trainmark-soak-") as folder,
        database(kind, Path(folder)) as made,
        site.running(made.url, Path(folder)) as here,
    ):
        home = Path(folder)
        fill_boards(here.address, made.url)
        settle(made.url)
        posting = agents.start(POSTERS, home, here.address)
        readers = Readers(here.address)
        try:
            with measuring_agent(home / "measuring", here.address) as agent:
                server = psutil.Process(here.pid("server"))
                counts = Counts(posting, readers)
                rows = list(watched(minutes, server, agent, counts))
        finally:
            readers.stop()
        agents.rest(posting)
        agents.end(posting)
        settle(made.url)
        here.close()
        verdict = judge(made.url, home, posting)
    errors = {status: n for status, n in readers.statuses.items() if status >= 400}
    growths = [growth([m.server_mib for m in rows]), growth([m.agent_mib for m in rows])]
    print(table(rows))
    print(
        f"\nGrowth over the second half (least squares): server {growths[0] * 100:+.1f} %, agent "
        f"{growths[1] * 100:+.1f} %; flat is at most {MOST_GROWTH * 100:.0f} %.\n"
        f"{verdict.acknowledged:,} results acknowledged, {verdict.lost} lost, "
        f"{verdict.doubled} doubled, {verdict.left} left; {readers.statuses.total():,} requests "
        f"answered, with an error: {errors or 0}."
    )
    for words in verdict.wrong:
        print(f"WRONG: {words}")
    flat = all(each <= MOST_GROWTH for each in growths)
    return 0 if flat and verdict.is_right and not errors else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make test-soak")
    parser.add_argument("--database", choices=KINDS, default="sqlite")
    options = parser.parse_args()
    minutes = int(os.environ.get("MINUTES") or DEFAULT_MINUTES)
    if minutes < LEAST_MINUTES:
        parser.error(f"MINUTES is {minutes}; a growth needs {LEAST_MINUTES} or more")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    sys.exit(soak(options.database, minutes))
