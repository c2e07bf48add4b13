"""The chart of the leaderboard: all hardware by score."""

from collections.abc import Sequence

from bench_protocol.base import format as people

from ...answers.types.leaderboard import HardwareScore
from ..dots import DotPlot, Row, Value, dot_plot
from .common import vendor

# Rows of the chart that are not folded away.
UNFOLDED_ROWS = 20


def score_chart(scores: Sequence[HardwareScore], q: str | None) -> DotPlot | None:
    """All hardware by score; None if only the baseline has one. What ``q`` names is ringed."""
    if all(_is_baseline(one) for one in scores):
        return None
    named = (q or "").casefold()
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
            note=_note(one),
            ringed=bool(named) and named in one.hardware.casefold(),
            pinned=_is_baseline(one),
        )
        for one in scores
        if one.score.value is not None
    ]
    baseline = scores[0].score.baseline
    hollow = any(value.hollow for row in rows for value in row.values)
    key = "; hollow: one owner, or not all workloads" if hollow else ""
    return dot_plot(f"Speed in multiples of {baseline}{key}", rows, UNFOLDED_ROWS)


def _is_baseline(one: HardwareScore) -> bool:
    return one.hardware_slug == one.score.baseline_slug


def _note(one: HardwareScore) -> str:
    if _is_baseline(one):
        return "baseline"
    return f"{one.score.covered} of {one.score.terms}" if one.score.missing else ""
