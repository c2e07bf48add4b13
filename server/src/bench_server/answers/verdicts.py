"""Verdicts of a comparison, of each pair and over all common rows, corrected for being shown
together."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from statistics import geometric_mean
from typing import Any

from sqlalchemy import select
from sqlmodel import Session

from bench_protocol.statistics.comparison import (
    CONFIDENCE,
    SIGNIFICANCE,
    in_words,
    no_difference_among,
    verdict_kind,
)

from ..db.lists import among
from ..ranking.compare import Comparisons, Pair, compare_all, interval, where
from ..ranking.figures import UNITS
from ..ranking.rows import RESULTS
from ..ranking.score import Overall, overall

MACHINES = select(RESULTS.c.submission_id, RESULTS.c.machine_id).where(
    among(RESULTS.c.submission_id, "ids")
)
FIELDS = ("speed_up", "speed_up_low", "speed_up_high", "verdict_kind", "verdict")
TOO_FEW = "not enough data: a row of the mean has no interval"
SEVERAL_MACHINES = "with one machine a side"


def verdicts(session: Session, pairs: Iterable[Pair]) -> Comparisons:
    """Compare every pair of figures that the answer shows."""
    listed = list(pairs)
    lowest = {figure for pair in listed for figure in pair if figure.unit == UNITS[0]}
    unnamed = {f.evidence.result_id for f in lowest if not f.subject.machine_id}
    rows = session.connection().execute(MACHINES, {"ids": sorted(unnamed)}) if unnamed else ()
    return compare_all(listed, {row.submission_id: row.machine_id for row in rows})


def verdicts_over_rows(sides: Sequence[Sequence[Pair]], found: Comparisons) -> list[dict[str, Any]]:
    """``FIELDS`` of each side: the geometric mean of its speed-ups, with bounds and verdict; null
    without rows.

    Args:
        sides: of each thing but the first, its figure and that of the first in each common row.
        found: the comparisons of these pairs.
    """
    bounded = {at for at, pairs in enumerate(sides) if _bounds(pairs, CONFIDENCE) is not None}
    clear = _clear({at: sides[at] for at in bounded})
    answers = []
    for at, pairs in enumerate(sides):
        one = overall([found.of[pair] for pair in pairs])
        if one is None:
            answers.append(dict.fromkeys(FIELDS))
            continue
        if one.speed_up_low is None or one.speed_up_high is None:
            verdict = {"verdict_kind": "too_few_runs", "verdict": TOO_FEW}
        else:
            verdict = _verdict(one, _where(pairs, found), at in clear, len(bounded))
        answers.append(asdict(one) | verdict)
    return answers


def _verdict(one: Overall, where: str, is_clear: bool, count: int) -> dict[str, str]:
    low, high = one.speed_up_low or 0.0, one.speed_up_high or 0.0
    kind = verdict_kind(low, high)
    words = in_words(kind, one.speed_up, low, high, where)
    if kind != "no_difference" and not is_clear:
        kind, words = "no_difference", no_difference_among(count, words)
    return {"verdict_kind": kind, "verdict": words}


def _clear(sides: dict[int, Sequence[Pair]]) -> set[int]:
    """The sides whose mean differs from 1 by Holm's procedure (1979), here in intervals: of m sides
    that are left, those whose bounds at 1 - 0.05 / m exclude 1 are clear and leave."""
    left = dict(sides)
    while now := [at for at in left if _excludes_1(left[at], 1 - SIGNIFICANCE / len(left))]:
        for at in now:
            del left[at]
    return sides.keys() - left.keys()


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
