"""The hardware that a server ranks directly above and below a machine's, workload by workload."""

from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import urlencode

from .client import Client


class Ranked(NamedTuple):
    """A ranked row of a board; ``samples_per_second`` in its fastest set-up."""

    workload: str
    rank: int
    hardware: str
    framework: str
    recipe: str
    batch_size: int
    samples_per_second: float


def next_to(client: Client, machine_id: str, workloads: Iterable[str]) -> list[Ranked]:
    """The rows one rank above and below the machine's hardware. Empty without a rank.

    Args:
        workloads: the boards that are asked for.

    Raises:
        ServerUnreachable: the server does not answer.
        ServerRefused: it knows no such machine.
    """
    places = client.read(f"/api/v1/machines/{machine_id}").get("places") or ()
    ranks = {place["workload"]: place["rank"] for place in places if place["rank"]}
    rows: list[Ranked] = []
    for workload in workloads:
        if workload in ranks:
            query = urlencode({"workload": workload, "limit": 500})
            board = client.read(f"/api/v1/leaderboard?{query}")
            rows += _around(board.get("rows") or (), ranks[workload])
    return rows


def _around(rows: Iterable[dict[str, Any]], rank: int) -> list[Ranked]:
    return [
        Ranked(*(row[name] for name in Ranked._fields))
        for row in rows
        if row["rank"] in (rank - 1, rank + 1)
    ]
