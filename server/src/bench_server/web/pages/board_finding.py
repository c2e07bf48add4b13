"""What the leaderboard found, as its heading."""

from collections import Counter
from collections.abc import Sequence

from bench_protocol import format as people

from ...answers import families, leaderboard
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
    Of a family, after its name. A question where nothing was measured."""
    firsts = _firsts(standings, filters.family)
    name = families.FAMILIES[filters.family].label if filters.family else ""
    if filters.family and not firsts and not scores:
        return f"{name}: no ranked results yet"
    if filters.workload is None and scores:
        found = _by_score(scores)
    elif filters.workload is None and not firsts:
        return "How fast does it train?"
    else:
        boards = f"{len(firsts)} workloads" if len(firsts) > 1 else next(iter(firsts), None)
        ((first, count),) = Counter(firsts.values()).most_common(1) or [("Who", 0)]
        where = f"{count} of {boards}" if len(firsts) > 1 else filters.workload or boards
        found = f"{first} {metric.first.format(where)}{'' if count else '?'}"
    return f"{name}: {found}" if name else found


def _firsts(standings: Sequence[leaderboard.Standing], family: str | None) -> dict[str, str]:
    """The hardware with the best rank on each board, of the family if there is one."""
    ranked = {
        standing.workload.name: [
            (row.rank, row.figure.hardware)
            for row in standing.rows
            if row.rank is not None
            and (
                not family
                or families.contains(family, row.figure.hardware, row.figure.setup.device)
            )
        ]
        for standing in standings
    }
    return {workload: min(rows)[1] for workload, rows in ranked.items() if rows}


def _by_score(scores: Sequence[HardwareScore]) -> str:
    """``H200 trains 31.0 times as fast as i7-8700``. Without a rank by score it says why."""
    best = scores[0]
    score = best.score
    if best.hardware_slug == score.baseline_slug:
        return f"{best.hardware} is the {'fastest' if len(scores) > 1 else 'first'} so far"
    why = "as published" if best.published else "" if best.rank else "provisionally"
    some = f"in {score.covered} of {score.terms} workloads" if score.missing else why
    found = f"{best.hardware} {people.faster_than(score.value or 1, 'trains')} {score.baseline}"
    return f"{found}, {some}" if some else found
