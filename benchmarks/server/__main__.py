"""How fast the server takes results in and answers: ``python -m benchmarks.server``.

Options: ``--databases sqlite,postgresql --sizes 1000,100000,1000000 --seconds 10``. Prints
one table; every figure is of this machine in this run, with the load it had.
"""

import argparse
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
from rich.console import Console
from rich.table import Table
from sqlalchemy import func, select
from tests.fakes import results

from bench_protocol import keys
from bench_server import schema
from bench_server.authority import load_authority
from bench_server.db import Store
from bench_server.tables import Submission

from . import load, seed, world
from .running import Databases, Running, databases, server

CLIENTS = (1, 16)
WORKERS = (1, 2)
KEYS = 64
LINES = 48
MOST_PER_SECOND = 2_500
ORIGIN = world.STANDS_IN.server_origin
HEADERS = {"Content-Type": "application/json"}
QUESTIONS = {
    "leaderboard, page": "/",
    "leaderboard, API": "/api/v1/leaderboard",
    "compare, page": "/compare?ids=nvidia-h200&ids=nvidia-l4",
    "compare, API": "/api/v1/compare?ids=nvidia-h200,nvidia-l4",
}


@dataclass(frozen=True)
class Line:
    """A line of the table. ``cpu_ms``: processor time of the server for each result or answer,
    which other work on the machine moves less than it moves the rates."""

    what: str
    workers: int
    clients: int
    per_second: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--databases", default="sqlite,postgresql")
    parser.add_argument("--sizes", default="1000,100000,1000000")
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is missing: apt-get install wrk, brew install wrk")
    kinds, sizes = options.databases.split(","), [int(n) for n in options.sizes.split(",")]
    lines: list[Line] = []
    console = Console(soft_wrap=True)
    with databases(kinds) as made:
        for kind in kinds:
            for size in sizes:
                measured = _measured(made, kind, size, options.seconds, every=size == min(sizes))
                for line in measured:
                    console.print(str(line), style="dim")
                    lines.append(line)
    console.print(_table(lines))


def _measured(
    made: Databases, kind: str, size: int, seconds: float, *, every: bool
) -> Iterator[Line]:
    """Ingest and questions on a database of one kind and size. ``every``: also with one client,
    with two workers and in batches."""
    url, place = made.new(kind)
    stored = _filled(url, place, size)
    name = f"{kind}, {stored:,} results"
    with server(url, place / "keys") as running:
        yield from _questions(running, name, seconds)
        yield _ingest(running, url, name, 16, 1, seconds)
        yield from [_ingest(running, url, name, 1, 1, seconds)] if every else []
        yield from [_ingest(running, url, name, 16, 1, seconds, LINES)] if every else []
        yield Line(f"{name}: resident MiB", 1, 0, running.resident_bytes() / 2**20, 0, 0, 0)
    if every:
        with server(url, place / "keys", workers=2) as running:
            for clients in CLIENTS:
                yield _ingest(running, url, name, clients, 2, seconds)
            yield _ingest(running, url, name, 16, 2, seconds, LINES)
            yield Line(f"{name}: resident MiB", 2, 0, running.resident_bytes() / 2**20, 0, 0, 0)


def _filled(url: str, place: Path, size: int) -> int:
    store = Store(url)
    try:
        schema.migrate(store.engine)
        return seed.seed(store, load_authority(ORIGIN, place / "keys"), size)
    finally:
        store.close()


def _questions(running: Running, name: str, seconds: float) -> Iterator[Line]:
    for what, path in QUESTIONS.items():
        address = running.address + path
        for _ in range(3):
            httpx.get(address, timeout=60).raise_for_status()
        cpu_before = running.cpu_seconds()
        found = load.getting(address, clients=1, seconds=seconds)
        cpu_ms = (running.cpu_seconds() - cpu_before) / found.answers * 1e3
        yield Line(f"{name}: {what}", 1, 1, found.per_second, found.p50_ms, found.p99_ms, cpu_ms)


def _ingest(
    running: Running,
    url: str,
    name: str,
    clients: int,
    workers: int,
    seconds: float,
    lines: int = 1,
) -> Line:
    """Post for some seconds; what was acknowledged must be in the database."""
    kind = load.JSON if lines == 1 else load.NDJSON
    path = running.address + "/api/v1/results"
    with _bodies(running, clients, seconds, lines) as bodies:
        before, cpu_before = _stored(url), running.cpu_seconds()
        found = load.posting(path, bodies, clients=clients, seconds=seconds, lines=lines, kind=kind)
    acknowledged, kept = found.answers * lines, _stored(url) - before
    if kept < acknowledged:
        raise load.LoadFailed(f"{acknowledged} acknowledged, {kept} are kept")
    cpu_ms = (running.cpu_seconds() - cpu_before) / kept * 1e3
    what = "results posted" if lines == 1 else f"results in batches of {lines}"
    rate = acknowledged / found.seconds
    return Line(f"{name}: {what}", workers, clients, rate, found.p50_ms, found.p99_ms, cpu_ms)


@contextmanager
def _bodies(running: Running, clients: int, seconds: float, lines: int) -> Iterator[Path]:
    """A file of envelopes that no server is fast enough to use up."""
    wanted = MOST_PER_SECOND * (seconds + 1) * (2 if lines > 1 else 1)
    count = clients * -(-int(wanted) // (world.RUN * clients))
    with httpx.Client(base_url=running.address, headers=HEADERS, timeout=60) as http:
        runs = [_run(http, number) for number in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "envelopes"
        world.write(path, world.in_turns(runs, clients if lines == 1 else 1))
        yield path


_runs = iter(range(1, 2**60))
_enrolled: set[tuple[str, int]] = set()


def _run(http: httpx.Client, number: int) -> world.Run:
    """A new run of an enrolled machine, with a challenge."""
    machine = number % KEYS
    key = results.private_key(machine + 1)
    if (str(http.base_url), machine) not in _enrolled:
        http.post("/api/v1/keys", content=results.enrollment(key)).raise_for_status()
        _enrolled.add((str(http.base_url), machine))
    asked = json.dumps({"key_id": keys.key_id(key.public_key())})
    given = http.post("/api/v1/challenges", content=asked).raise_for_status()
    return world.Run(world.Sender(machine, key), next(_runs), world.challenge_of(given.content))


def _stored(url: str) -> int:
    store = Store(url)
    try:
        with store.reading() as session:
            return session.connection().scalar(select(func.count(Submission.id))) or 0  # type: ignore[arg-type]
    finally:
        store.close()


def _table(lines: list[Line]) -> Table:
    load_average = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    title = (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} x {platform.machine()}, "
        f"{platform.system()}, Python {platform.python_version()}, load {load_average}"
    )
    table = Table("", "workers", "clients", "a second", "p50 ms", "p99 ms", "CPU ms", title=title)
    for line in lines:
        figures = (f"{line.per_second:,.0f}", f"{line.p50_ms:.1f}", f"{line.p99_ms:.1f}")
        figures += (f"{line.cpu_ms:.2f}",)
        table.add_row(line.what, str(line.workers), str(line.clients), *figures)
    return table


if __name__ == "__main__":
    main()
