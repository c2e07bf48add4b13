"""Changes in a machine's history in words: how much faster or slower, how certain, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from bench_protocol import differences
from bench_protocol import format as people

from ..answers.history import Change

MOST_CAUSES = 8
# From this speed-up on, and below its inverse, "times as fast" reads better than a percentage.
TIMES_FROM = 2.0


@dataclass(frozen=True)
class ChangeWords:
    """A change for people. ``kind`` is its colour; ``label`` is for the mark in a chart, ``words``
    and ``interval`` for the list; ``causes`` are the differences there, ``more`` how many others
    there are."""

    kind: Literal["faster", "slower"]
    label: str
    words: str
    interval: str | None
    started_at: datetime
    result_id: str
    causes: tuple[str, ...]
    more: int


def in_words(change: Change, machine: Mapping[str, Any]) -> ChangeWords:
    """Words for a change.

    Args:
        machine: the machine's description, for the name of its system.
    """
    system = str((machine.get("os") or {}).get("name") or "system")
    interval = None
    if change.speed_up_low is not None and change.speed_up_high is not None:
        interval = _interval(change.speed_up, change.speed_up_low, change.speed_up_high)
    return ChangeWords(
        kind="faster" if change.speed_up >= 1 else "slower",
        label=_label(change.speed_up),
        words=amount(change.speed_up),
        interval=interval,
        started_at=change.started_at,
        result_id=change.result_id,
        causes=tuple(differences.in_words(one, system) for one in change.changed[:MOST_CAUSES]),
        more=max(0, len(change.changed) - MOST_CAUSES),
    )


def amount(speed_up: float) -> str:
    """``6.1 % slower``, ``12.0 % faster``, ``2.40× as fast``."""
    if speed_up >= TIMES_FROM:
        return f"{people.ratio(speed_up)} as fast"
    if speed_up <= 1 / TIMES_FROM:
        return f"{people.ratio(1 / speed_up)} slower"
    return f"{people.percent(abs(speed_up - 1))} {'faster' if speed_up >= 1 else 'slower'}"


def _label(speed_up: float) -> str:
    """``−6.1 %``, ``+12.0 %``, ``2.40×``: short, because marks are close to each other."""
    if not 1 / TIMES_FROM < speed_up < TIMES_FROM:
        return people.ratio(speed_up)
    return f"{100 * (speed_up - 1):+.1f} %".replace("-", "\N{MINUS SIGN}")


def _interval(speed_up: float, low: float, high: float) -> str:
    """The interval in the words of :func:`amount`; as ratios if it holds both slower and faster."""
    if low < 1 < high or not 1 / TIMES_FROM < speed_up < TIMES_FROM:
        if speed_up <= 1 / TIMES_FROM:
            low, high = 1 / high, 1 / low
        return f"95 % CI {people.ratio(low)} to {people.ratio(high)}"
    near, far = sorted((abs(low - 1), abs(high - 1)))
    return f"95 % CI {100 * near:.1f} to {100 * far:.1f} %"
