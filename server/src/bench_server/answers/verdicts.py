"""Verdicts of a comparison: of each row, corrected for their number, and over all common rows."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from statistics import geometric_mean
from typing import Any

from sqlalchemy import select
from sqlmodel import Session

from bench_protocol.statistics.comparison import in_words, verdict_kind

from ..db.lists import among
from ..ranking.compare import Comparisons, Pair, compare_all, verdict_bounds, where
from ..ranking.figures import UNITS
from ..ranking.ranges import weakest
from ..ranking.rows import RESULTS
from ..ranking.score import overall

MACHINES = select(RESULTS.c.submission_id, RESULTS.c.machine_id).where(
    among(RESULTS.c.submission_id, "ids")
)
FIELDS = (
    *("speed_up", "speed_up_low", "speed_up_high", "speed_up_range_of"),
    *("verdict_kind", "verdict"),
)
TOO_FEW = "no verdict yet: a row of the mean has no interval"
SEVERAL_MACHINES = "with one machine a side"


def verdicts(session: Session, pairs: Iterable[Pair]) -> Comparisons:
    listed = list(pairs)
    lowest = {figure for pair in listed for figure in pair if figure.unit == UNITS[0]}
    unnamed = {f.evidence.result_id for f in lowest if not f.subject.machine_id}
    rows = session.connection().execute(MACHINES, {"ids": sorted(unnamed)}) if unnamed else ()
    return compare_all(listed, {row.submission_id: row.machine_id for row in rows})


def verdicts_over_rows(pairs: Sequence[Pair], found: Comparisons) -> dict[str, Any]:
    """``FIELDS`` of a thing: the geometric mean of its speed-ups, its range and its verdict."""
    one = overall([found.of[pair] for pair in pairs])
    if one is None:
        return dict.fromkeys(FIELDS)
    kind, words = "too_few_runs", TOO_FEW
    if (bounds := _bounds(pairs)) is not None:
        kind = verdict_kind(*bounds)
        words = in_words(kind, one.speed_up, *bounds, _where(pairs, found))
    ranges = [of for pair in pairs if (of := found.of[pair].speed_up_range_of)]
    drawn = weakest(ranges) if len(ranges) == len(pairs) else None
    return asdict(one) | dict(zip(FIELDS[3:], (drawn, kind, words), strict=True))


def _bounds(pairs: Sequence[Pair]) -> tuple[float, float] | None:
    """The bounds of the mean's verdict; see :func:`bench_server.ranking.score.overall`."""
    found = [verdict_bounds(*pair) for pair in pairs]
    bounds = [one for one in found if one is not None]
    if not bounds or len(bounds) < len(found):
        return None
    lows, highs = zip(*bounds, strict=True)
    return geometric_mean(lows), geometric_mean(highs)


def _where(pairs: Sequence[Pair], found: Comparisons) -> str:
    """The machines that the verdict is limited to, if a row compares one machine with another."""
    limits = {where(*pair, found.machines) for pair in pairs if found.of[pair].scope == "machines"}
    return limits.pop() if len(limits) == 1 else SEVERAL_MACHINES if limits else ""
