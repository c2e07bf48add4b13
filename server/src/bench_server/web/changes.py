"""Changes in a machine's history in words: how much faster or slower, how certain, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from bench_protocol.base import format as people
from bench_protocol.payload import differences

from ..answers.history import Change

MOST_CAUSES = 8


@dataclass(frozen=True)
class ChangeWords:
    """``label`` is for the mark in a chart; ``kind`` is its colour; ``more``: causes left out."""

    kind: Literal["faster", "slower"]
    label: str
    words: str
    interval: str
    started_at: datetime
    result_id: str
    causes: tuple[str, ...]
    more: int


def in_words(change: Change, machine: Mapping[str, Any]) -> ChangeWords:
    """``machine``: its description, for the name of its system."""
    system = str((machine.get("os") or {}).get("name") or "system")
    bounds = people.bounds(change.speed_up, change.speed_up_low, change.speed_up_high)
    return ChangeWords(
        kind="faster" if change.speed_up >= 1 else "slower",
        label=people.ratio(change.speed_up),
        words=people.faster(change.speed_up),
        interval=f"95 % CI {bounds}",
        started_at=change.started_at,
        result_id=change.result_id,
        causes=tuple(differences.in_words(one, system) for one in change.changed[:MOST_CAUSES]),
        more=max(0, len(change.changed) - MOST_CAUSES),
    )
