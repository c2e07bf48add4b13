"""A machine on a server: its rank, the hardware ranked next to it, its history."""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple
from urllib.parse import urlencode

from pydantic import BaseModel, ValidationError

from bench_protocol.base import format as people
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload.differences import Difference, several_in_words
from bench_protocol.payload.figures import timing_kind
from bench_protocol.payload.rank_text import beside_words, rank_words
from bench_protocol.payload.result import Measured, Result

from .client import Client, ServerRefused
from .connection import reading


class MachineRank(NamedTuple):
    """The address of a machine's page, and its rank in words, None without one."""

    address: str
    words: str | None

    @property
    def machine_id(self) -> str:
        return self.address.rpartition("/")[2]


def machine_rank(
    client: Client, result_id: str, workloads: Collection[str] = ()
) -> MachineRank | None:
    """The rank of a result's machine, once boards have it. None without a ranked result.
    ``workloads``: those just measured, whose rank comes first."""
    with reading(client.server):
        answer = client.result_on_board(result_id)
        machine_id = answer["machine_id"] if answer else None
        if machine_id is None:
            return None
        words = in_words(client.read(f"/api/v1/machines/{machine_id}")["places"], workloads)
    return MachineRank(f"{client.server}/machines/{machine_id}", words)


def in_words(places: Any, workloads: Collection[str] = ()) -> str | None:
    """The rank of a machine's hardware in the first of these workloads that has one, else in its
    first of all, and the machine beside its median: ``15th of 47 on mnist-cnn; this machine is
    1.019 times as fast as the median one``."""
    ranked = [place for place in places if place["rank"]]
    ranked.sort(key=lambda place: place["workload"] not in workloads)  # stable: else as they came
    return rank_words(ranked[0]) + beside_words(ranked[0]) if ranked else None


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
    """The rows of these boards one rank above and below the machine's hardware."""
    rows: list[Ranked] = []
    with reading(client.server):
        places = client.read(f"/api/v1/machines/{machine_id}")["places"]
        ranks = {place["workload"]: place["rank"] for place in places if place["rank"]}
        for workload in workloads:
            if workload in ranks:
                query = urlencode({"workload": workload, "limit": 500})
                board = client.read(f"/api/v1/leaderboard?{query}")
                rows += [
                    Ranked(*(row[name] for name in Ranked._fields))
                    for row in board["rows"]
                    if row["rank"] in (ranks[workload] - 1, ranks[workload] + 1)
                ]
    return rows


class Change(BaseModel):
    """From ``started_at`` on the machine was ``speed_up`` times as fast. Fields that the server
    adds later are ignored, here and in :class:`History`."""

    started_at: str
    speed_up: float
    speed_up_low: float
    speed_up_high: float
    changed: list[Difference]


class History(BaseModel):
    """The runs of one set-up on one machine, and the changes of its speed, oldest first."""

    points: list[Any]
    changes: list[Change]


def histories(
    client: Client, machine_id: str, results: Iterable[Result]
) -> dict[Cell, History | None]:
    """The server's history of each measured set-up, None without a ranked result of it."""
    measured = {
        result.cell: result.outcome.measurement.blocks.total_ns
        for result in results
        if isinstance(result.outcome, Measured)
    }
    return {cell: _history(client, machine_id, cell, ns) for cell, ns in measured.items()}


def _history(client: Client, machine_id: str, cell: Cell, timed_ns: int) -> History | None:
    named = ("workload", "framework", "recipe", "batch_size", "precision", "data")
    query = {name: getattr(cell, name) for name in named}
    query |= {"device": cell.device.kind, "timing": timing_kind(cell.device.kind, timed_ns)}
    try:
        answer = client.read(f"/api/v1/machines/{machine_id}/history?{urlencode(query)}")
        return History.model_validate(answer)
    except (ServerRefused, ValidationError):
        return None


def change_words(history: History | None, system: str) -> str:
    """The newest change of a history: ``18 % slower since 2026-03-10 (95 % CI 16 to 20 % slower):
    driver of GPU 0 570.1 became 580.2``."""
    if history is None:
        return "the server has no ranked run"
    runs = people.plural(len(history.points), "run")
    if not history.changes:
        return f"no change of speed in {runs}"
    change = history.changes[-1]
    bounds = people.bounds(change.speed_up, change.speed_up_low, change.speed_up_high)
    text = f"{people.faster(change.speed_up)} since {change.started_at[:10]} (95 % CI {bounds})"
    causes = several_in_words(change.changed, system)
    return f"{text}: {causes or 'machine and software are the same'}"
