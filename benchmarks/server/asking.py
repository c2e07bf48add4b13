"""How fast questions are answered, by one client: worked out the first time, and kept."""

from collections.abc import Sequence
from itertools import combinations

import httpx

from bench_server.web.response_cache import CACHED_ANSWERS

from . import load
from .databases import Database
from .lines import Found, Line
from .running import Running, server

WARM_UP = 5
LIMITS = range(200, 400)


def measured(database: Database, seconds: float) -> Found:
    """The board and a comparison, page and API, each as the first to ask sees it and as others do.

    An answer is kept by its address, so those who ask first are many addresses in turn that take
    the same work: boards with a limit that none reaches, each two kinds of hardware.
    """
    with server(database.url, database.place / "keys") as running:
        listed = httpx.get(f"{running.address}/api/v1/hardware", timeout=60).raise_for_status()
        pairs = list(combinations([item["slug"] for item in listed.json()["hardware"]], 2))
        for what, paths in (
            ("leaderboard, page", [f"/?limit={limit}" for limit in LIMITS]),
            ("leaderboard, API", [f"/api/v1/leaderboard?limit={limit}" for limit in LIMITS]),
            ("compare, page", [f"/compare?ids={a}&ids={b}" for a, b in pairs]),
            ("compare, API", [f"/api/v1/compare?ids={a},{b}" for a, b in pairs]),
        ):
            assert len(paths) > CACHED_ANSWERS, "an address must be forgotten when its turn comes"
            yield _asked(running, database, f"{what}, first", paths, seconds)
            yield _asked(running, database, f"{what}, kept", paths[:1], seconds)


def _asked(
    running: Running, database: Database, what: str, paths: Sequence[str], seconds: float
) -> Line:
    for path in (*paths, *paths)[:WARM_UP]:
        httpx.get(running.address + path, timeout=60).raise_for_status()
    found, cpu_seconds, resident_mib = running.while_under(
        lambda: load.getting(running.address, paths, clients=1, seconds=seconds)
    )
    if found.refused:
        raise load.LoadFailed(f"{paths[0]} and others: {found.refused} were refused")
    cpu_ms = cpu_seconds / found.answers * 1e3
    name = f"{database.kind}: {what}"
    return Line(name, database.stored, 1, 1, found, cpu_ms, resident_mib)
