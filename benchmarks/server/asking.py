"""How fast questions are answered: while results are posted, and where nobody asked before."""

import threading
from collections.abc import Callable, Sequence
from itertools import combinations

import httpx

from . import load
from .databases import Database
from .lines import Found, Line
from .load import Load
from .running import Running, server
from .taking import bodies

WARM_UP = 5
# More addresses than the server keeps answers of, so that each is forgotten when its turn comes.
LIMITS = range(200, 400)
READS_PER_SECOND = 50
WRITES_PER_SECOND = 20
LEAST_SECONDS = 10.0


def measured(database: Database, seconds: float) -> Found:
    """Boards and comparisons, page and API: each in turn while results are posted, then at
    addresses that nobody asked for, which take the same work: boards with a limit that none
    reaches, each two kinds of hardware."""
    with server(database.url, database.place / "keys") as running:
        listed = httpx.get(f"{running.address}/api/v1/hardware", timeout=60).raise_for_status()
        pairs = list(combinations([item["slug"] for item in listed.json()["hardware"]], 2))
        questions = {
            "leaderboard, page": [f"/?limit={limit}" for limit in LIMITS],
            "leaderboard, API": [f"/api/v1/leaderboard?limit={limit}" for limit in LIMITS],
            "compare, page": [f"/compare?ids={a}&ids={b}" for a, b in pairs],
            "compare, API": [f"/api/v1/compare?ids={a},{b}" for a, b in pairs],
        }
        yield from while_posting(running, database, questions, max(seconds, LEAST_SECONDS))
        for what, paths in questions.items():
            name = f"{what}, not asked before"
            yield _line(running, database, name, paths, _in_turn(running, paths, seconds))


def while_posting(
    running: Running, database: Database, questions: dict[str, list[str]], seconds: float
) -> Found:
    """The first address of each question, in turn, while results are posted all the time."""
    most = int(WRITES_PER_SECOND * (len(questions) * seconds * 1.2 + 5))
    with bodies(running, database, 1, most, 1) as file, file.open("rb") as lines:
        ended = threading.Event()
        posts = (("POST", "/api/v1/results", line) for line in lines)
        posted: list[Load] = []
        writer = threading.Thread(
            target=lambda: posted.append(
                load.paced(running.address, posts, WRITES_PER_SECOND, ended.is_set)
            )
        )
        writer.start()
        try:
            for what, paths in questions.items():
                name = f"{what}, {WRITES_PER_SECOND} results/s posted"
                yield _line(running, database, name, paths, _paced(running, paths[0], seconds))
        finally:
            ended.set()
            writer.join()
    yield f"{database.kind}: {posted[0].answers} results posted, p99 {posted[0].p99_ms:.1f} ms"


def _paced(running: Running, path: str, seconds: float) -> Callable[[], Load]:
    questions = (("GET", path, None) for _ in range(int(READS_PER_SECOND * seconds)))
    return lambda: load.paced(running.address, questions, READS_PER_SECOND)


def _in_turn(running: Running, paths: Sequence[str], seconds: float) -> Callable[[], Load]:
    return lambda: load.getting(running.address, paths, clients=1, seconds=seconds)


def _line(
    running: Running,
    database: Database,
    what: str,
    paths: Sequence[str],
    asked: Callable[[], Load],
) -> Line:
    for path in (*paths, *paths)[:WARM_UP]:
        httpx.get(running.address + path, timeout=60).raise_for_status()
    found, cpu_seconds, resident_mib = running.while_under(asked)
    if found.refused:
        raise load.LoadFailed(f"{paths[0]} and others: {found.refused} were refused")
    cpu_ms = cpu_seconds / found.answers * 1e3
    return Line(f"{database.kind}: {what}", database.stored, 1, 1, found, cpu_ms, resident_mib)
