"""What the leaderboard found, as its heading."""

from collections import Counter
from collections.abc import Sequence

from bench_protocol import format as people

from ...answers import leaderboard
from ...answers.families import FAMILIES
from ...answers.filters import BoardFilters
from ...answers.types import HardwareScore
from .board_links import Metric


def finding(
    filters: BoardFilters,
    metric: Metric,
    standings: Sequence[leaderboard.Standing],
    scores: Sequence[HardwareScore],
) -> str:
    """The first of a board. Of all boards: the best score, else who is first on most of them.
    A question where nothing was measured."""
    firsts = {
        standing.workload.name: row.figure.hardware
        for standing in standings
        for row in standing.rows
        if row.rank == 1
    }
    if filters.workload is not None:
        words = metric.first.format(filters.workload)
        first = firsts.get(filters.workload)
        return f"{first} {words}" if first else f"Who {words}?"
    if scores:
        return _by_score(scores, filters)
    if not firsts:
        return "How fast does it train?"
    ((name, count),) = Counter(firsts.values()).most_common(1)
    boards = f"{count} of {len(firsts)} workloads" if len(firsts) > 1 else next(iter(firsts))
    return f"{name} {metric.first.format(boards)}"


def _by_score(scores: Sequence[HardwareScore], filters: BoardFilters) -> str:
    """``H200 trains 31.0 times as fast as i7-8700``. Without a rank by score it says why."""
    best = scores[0]
    score = best.score
    family = f"{FAMILIES[filters.family].label}: " if filters.family else ""
    if best.hardware_slug == score.baseline_slug:
        return f"{family}{best.hardware} is the {'fastest' if len(scores) > 1 else 'first'} so far"
    why = "as published" if best.published else "" if best.rank else "provisionally"
    some = f"in {score.covered} of {score.terms} workloads" if score.missing else why
    found = f"{best.hardware} {people.faster_than(score.value or 1, 'trains')} {score.baseline}"
    return f"{family}{found}{f', {some}' if some else ''}"
