"""How many results a server accepts and projects: one by one, in batches, and for a minute."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from threading import Event, Thread

import httpx
from tests.fakes import results

from . import load, world
from .databases import Database
from .lines import Found, Line
from .running import Running, server

CLIENTS = (1, 16)
KEYS = 64
LINES = 48
ROUNDS = 5
HEADERS = {"Content-Type": "application/json"}
# More than any server here takes in a second, by clients and by lines in a request.
MOST_PER_SECOND = {(1, 1): 1_500, (16, 1): 3_000, (16, LINES): 6_000}
SUSTAINED_SECONDS = 60.0
SUSTAINED_MOST = 2_000
SAMPLE_SECONDS = 0.5


def measured(database: Database, workers: int, seconds: float) -> Found:
    """One by one from one client and from many, and in batches."""
    with server(database.url, database.place / "keys", workers) as running:
        for (clients, lines), most in MOST_PER_SECOND.items():
            yield _posted(running, database, workers, clients, lines, seconds, most)
            yield _caught_up(running, database)


def sustained(database: Database, workers: int) -> Found:
    """Results one by one for a minute: how far behind the boards are meanwhile, and when not."""
    lags: list[int] = []
    with server(database.url, database.place / "keys", workers) as running:
        ended = Event()

        def watch() -> None:
            while not ended.wait(SAMPLE_SECONDS):
                lags.append(database.lag())

        thread = Thread(target=watch)
        thread.start()
        try:
            yield _posted(
                running, database, workers, CLIENTS[-1], 1, SUSTAINED_SECONDS, SUSTAINED_MOST
            )
        finally:
            ended.set()
            thread.join()
        yield (
            f"{database.kind}, {SUSTAINED_SECONDS:g} s: at most {max(lags):,} entries were not "
            f"projected yet, {lags[-1]:,} at the end"
        )
        yield _caught_up(running, database)


def _caught_up(running: Running, database: Database) -> str:
    """Wait for the projector after a load, and say how long and at what cost."""
    lag, began, cpu_seconds = database.lag(), time.monotonic(), running.cpu_seconds()
    while database.lag():
        time.sleep(SAMPLE_SECONDS / 10)
    took, used = time.monotonic() - began, running.cpu_seconds() - cpu_seconds
    cost = f", {used / lag * 1e3:.2f} processor ms each" if lag >= 500 else ""
    return f"{database.kind}: {lag:,} entries were left to project, done in {took:.1f} s{cost}"


def compared(small: Database, large: Database, seconds: float) -> Found:
    """The same load on two databases in turns, so that other work on the machine meets both."""
    ratios, first, last = [], {}, {}
    with (
        server(small.url, small.place / "keys") as of_small,
        server(large.url, large.place / "keys") as of_large,
    ):
        for _ in range(ROUNDS):
            for database, running in ((small, of_small), (large, of_large)):
                clients = CLIENTS[-1]
                most = MOST_PER_SECOND[clients, 1]
                last[database.url] = _posted(running, database, 1, clients, 1, seconds, most)
                first.setdefault(database.url, last[database.url])
            rates = [last[database.url].load.per_second for database in (small, large)]
            ratios.append(rates[1] / rates[0])
    yield (
        f"{large.kind}: with {large.stored:,} results stored, {CLIENTS[-1]} clients' results are "
        f"taken in {median(ratios):.2f} times as fast as with {small.stored:,} (median of {ROUNDS} "
        f"rounds of {seconds:g} s in turns, {min(ratios):.2f} to {max(ratios):.2f})"
    )
    for database in (small, large):
        yield (
            f"{database.kind}: the server's resident set with {database.stored:,} results stored: "
            f"{first[database.url].resident_mib:,.0f} MiB in the first of these rounds, "
            f"{last[database.url].resident_mib:,.0f} in the last, after "
            f"{database.count() - database.stored:,} more"
        )


def _posted(
    running: Running,
    database: Database,
    workers: int,
    clients: int,
    lines: int,
    seconds: float,
    most_per_second: int,
) -> Line:
    """Post for some seconds; what was acknowledged must be in the database.

    Raises:
        LoadFailed: something was refused, or is not there.
    """
    path = running.address + "/api/v1/results"
    kind = load.JSON if lines == 1 else load.NDJSON
    most = int(most_per_second * (seconds + 1))
    with bodies(running, database, clients, most, lines) as envelopes:
        before = database.count()
        found, cpu_seconds, resident_mib = running.while_under(
            lambda: load.posting(
                path, envelopes, clients=clients, seconds=seconds, lines=lines, kind=kind
            )
        )
    acknowledged, kept = found.answers * lines, database.count() - before
    if found.refused or kept < acknowledged:
        raise load.LoadFailed(
            f"{acknowledged} acknowledged, {kept} are kept, {found.refused} requests refused"
        )
    what = "results" if lines == 1 else f"results, {lines} in a request"
    taken = load.Load(acknowledged, 0, found.seconds, found.p50_ms, found.p99_ms)
    cpu_ms = cpu_seconds / kept * 1e3
    return Line(f"{database.kind}: {what}", before, workers, clients, taken, cpu_ms, resident_mib)


@contextmanager
def bodies(
    running: Running, database: Database, clients: int, most: int, lines: int
) -> Iterator[Path]:
    """A file of at least so many envelopes, a line each, of whole runs."""
    count = clients * -(-most // (world.RUN * clients))
    with httpx.Client(base_url=running.address, headers=HEADERS, timeout=60) as http:
        runs = [_run(http, number) for number in range(count)]
    database.age_challenges()
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
    asked = results.challenge_request(key, http.get("/api/v1/log").json()["origin"])
    given = http.post("/api/v1/challenges", content=asked).raise_for_status()
    return world.Run(world.Sender(machine, key), next(_runs), world.challenge_of(given.content))
