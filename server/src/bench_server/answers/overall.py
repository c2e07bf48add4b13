"""The verdicts of a comparison over all common rows, corrected for being shown together."""

from collections.abc import Sequence
from dataclasses import asdict
from statistics import geometric_mean
from typing import Any

from bench_protocol.statistics.comparison import (
    CONFIDENCE,
    SIGNIFICANCE,
    in_words,
    no_difference_among,
    verdict_kind,
)

from ..ranking.compare import Comparisons, Pair, interval, where
from ..ranking.score import Overall, overall

FIELDS = ("speed_up", "speed_up_low", "speed_up_high", "verdict_kind", "verdict")
TOO_FEW = "not enough data: a row of the mean has no interval"
SEVERAL_MACHINES = "with one machine a side"


def verdicts_over_rows(sides: Sequence[Sequence[Pair]], found: Comparisons) -> list[dict[str, Any]]:
    """``FIELDS`` of each side: the geometric mean of its speed-ups, with bounds and verdict; null
    without rows.

    Args:
        sides: of each thing but the first, its figure and that of the first in each common row.
        found: the comparisons of these pairs.
    """
    bounded = [pairs for pairs in sides if _bounds(pairs, CONFIDENCE) is not None]
    clear = _clear(bounded)
    answers = []
    for pairs in sides:
        one = overall([found.of[pair] for pair in pairs])
        if one is None:
            answers.append(dict.fromkeys(FIELDS))
            continue
        if one.speed_up_low is None or one.speed_up_high is None:
            verdict = {"verdict_kind": "too_few_runs", "verdict": TOO_FEW}
        else:
            is_clear = any(pairs is other for other in clear)
            verdict = _verdict(one, _where(pairs, found), is_clear, len(bounded))
        answers.append(asdict(one) | verdict)
    return answers


def _verdict(one: Overall, where: str, is_clear: bool, count: int) -> dict[str, str]:
    low, high = one.speed_up_low or 0.0, one.speed_up_high or 0.0
    kind = verdict_kind(low, high)
    words = in_words(kind, one.speed_up, low, high, where)
    if kind != "no_difference" and not is_clear:
        kind, words = "no_difference", no_difference_among(count, words)
    return {"verdict_kind": kind, "verdict": words}


def _clear(sides: Sequence[Sequence[Pair]]) -> list[Sequence[Pair]]:
    """The sides whose mean differs from 1 by Holm's procedure (1979), here in intervals: of m sides
    that are left, those whose bounds at 1 - 0.05 / m exclude 1 are clear and leave."""
    clear: list[Sequence[Pair]] = []
    left = list(sides)
    while left:
        confidence = 1 - SIGNIFICANCE / len(left)
        now = [pairs for pairs in left if _excludes_1(pairs, confidence)]
        if not now:
            break
        clear += now
        left = [pairs for pairs in left if not any(pairs is other for other in now)]
    return clear


def _excludes_1(pairs: Sequence[Pair], confidence: float) -> bool:
    bounds = _bounds(pairs, confidence)
    return bounds is not None and verdict_kind(*bounds) != "no_difference"


def _bounds(pairs: Sequence[Pair], confidence: float) -> tuple[float, float] | None:
    """The bounds of the mean; see :func:`bench_server.ranking.score.overall`."""
    found = [interval(*pair, confidence) for pair in pairs]
    bounds = [one for one in found if one is not None]
    if not bounds or len(bounds) < len(found):
        return None
    lows, highs = zip(*bounds, strict=True)
    return geometric_mean(lows), geometric_mean(highs)


def _where(pairs: Sequence[Pair], found: Comparisons) -> str:
    """The machines that the verdict is limited to, if a row compares one machine with another."""
    limits = {where(*pair, found.machines) for pair in pairs if found.of[pair].scope == "machines"}
    return limits.pop() if len(limits) == 1 else SEVERAL_MACHINES if limits else ""
