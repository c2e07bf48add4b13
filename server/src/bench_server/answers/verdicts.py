"""Verdicts of a comparison: of each row, corrected for being shown together, and over all rows that
two things have."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from statistics import geometric_mean
from typing import Any

from sqlalchemy import select
from sqlmodel import Session

from bench_protocol.statistics.comparison import (
    CONFIDENCE,
    in_words,
    verdict_kind,
)

from ..db.lists import among
from ..ranking.compare import Comparisons, Pair, compare_all, interval, where
from ..ranking.figures import UNITS
from ..ranking.rows import RESULTS
from ..ranking.score import overall

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


def verdicts_over_rows(pairs: Sequence[Pair], found: Comparisons) -> dict[str, Any]:
    """``FIELDS`` of a thing: the geometric mean of its speed-ups over the first thing, with bounds
    and verdict; null without rows.

    Args:
        pairs: the figures of both in each row that both have.
        found: the comparisons of these pairs.
    """
    one = overall([found.of[pair] for pair in pairs])
    if one is None:
        return dict.fromkeys(FIELDS)
    if (bounds := _bounds(pairs, CONFIDENCE)) is None:
        return asdict(one) | {"verdict_kind": "too_few_runs", "verdict": TOO_FEW}
    kind = verdict_kind(*bounds)
    words = in_words(kind, one.speed_up, *bounds, _where(pairs, found))
    return asdict(one) | {"verdict_kind": kind, "verdict": words}


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
