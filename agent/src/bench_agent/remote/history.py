"""What a server's history of this machine says of the set-ups that were just measured."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from pydantic import BaseModel, ValidationError

from bench_protocol.base import format as people
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload.differences import Difference, several_in_words
from bench_protocol.payload.figures import timing_kind
from bench_protocol.payload.result import Measured, Result

from .client import Client, ServerRefused


class Change(BaseModel):
    """From ``started_at`` on the machine was ``speed_up`` times as fast.

    Fields that the server adds later are ignored, here and in :class:`History`.
    """

    started_at: str
    speed_up: float
    speed_up_low: float | None = None
    speed_up_high: float | None = None
    changed: list[Difference] = []


class History(BaseModel):
    """The runs of one set-up on one machine, and the changes of its speed, oldest first."""

    points: list[Any]
    changes: list[Change]


def histories(
    client: Client, machine_id: str, results: Iterable[Result]
) -> dict[Cell, History | None]:
    """The server's history of each measured set-up, None without a ranked result of it.

    Args:
        machine_id: the server's id of this machine.

    Raises:
        ServerUnreachable: the server does not answer.
    """
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


def words(history: History | None, system: str) -> str:
    """The newest change of a history: ``takes 1.22 times as long since 2026-03-10 (95 % CI 1.19 to
    1.25): driver of GPU 0 570.1 became 580.2``.

    Args:
        system: the operating system's name on the wire.
    """
    if history is None:
        return "the server has no ranked run"
    runs = people.plural(len(history.points), "run")
    if not history.changes:
        return f"no change of speed in {runs}"
    change = history.changes[-1]
    text = f"{people.faster(change.speed_up)} since {change.started_at[:10]}"
    if change.speed_up_low is not None and change.speed_up_high is not None:
        bounds = people.bounds(change.speed_up, change.speed_up_low, change.speed_up_high)
        text += f" (95 % CI {bounds})"
    causes = several_in_words(change.changed, system)
    return f"{text}: {causes or 'machine and software are the same'}"
