"""The chart of the leaderboard: all hardware by score."""

from collections.abc import Collection, Sequence

from bench_protocol.base import format as people

from ...answers.types.leaderboard import HardwareScore
from ..dots import DotPlot, Row, Value, dot_plot
from .common import vendor

# A machine has a GPU and a CPU; of more hardware a reader owns none for sure.
OF_ONE = 2
# Rows of the chart that are not folded away: half of them if some are ringed, which come next.
UNFOLDED_ROWS = 20


def score_chart(scores: Sequence[HardwareScore], mine: Collection[str] = ()) -> DotPlot | None:
    """All hardware by score, ``mine`` (slugs) ringed; None if only the baseline has a score."""
    if all(_is_baseline(one) for one in scores):
        return None
    rows = [
        Row(
            label=one.hardware,
            href=f"/hardware/{one.hardware_slug}",
            values=(
                Value(
                    one.score.value,
                    one.score.value_low,
                    one.score.value_high,
                    vendor(one.hardware),
                    f"{one.hardware}: {people.ratio(one.score.value)}",
                    hollow=not one.score.complete or one.score.backing == "one",
                ),
            ),
            text=people.ratio(one.score.value),
            note="◀ you" if one.hardware_slug in mine and len(mine) <= OF_ONE else _note(one),
            ringed=one.hardware_slug in mine,
            pinned=_is_baseline(one) or one.hardware_slug in mine,
            item=one.hardware_slug,
        )
        for one in scores
        if one.score.value is not None
    ]
    baseline = scores[0].score.baseline
    hollow = any(value.hollow for row in rows for value in row.values)
    key = "; hollow: one owner, or not all workloads" if hollow else ""
    return dot_plot(
        f"Speed in multiples of {baseline}{key}", rows, UNFOLDED_ROWS // (2 if mine else 1)
    )


def _is_baseline(one: HardwareScore) -> bool:
    return one.hardware_slug == one.score.baseline_slug


def _note(one: HardwareScore) -> str:
    if _is_baseline(one):
        return "baseline"
    return f"{one.score.covered} of {one.score.terms}" if one.score.missing else ""
