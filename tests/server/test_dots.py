"""Dot plots: rows on one logarithmic axis, and the view while rows are folded away."""

import pytest

from bench_server.web.dots import LEFT, DotPlot, Row, Value, dot_plot


def made(*speeds: float, pinned: float | None = None, first: int | None = None) -> DotPlot:
    rows = [
        Row(str(at), "", (Value(at, None, None, "", ""),), "", pinned=at == pinned) for at in speeds
    ]
    plot = dot_plot("", rows, first)
    assert plot
    return plot


def seen(plot: DotPlot, row: int) -> float:
    """The position of a row's dot in the stretched plot, whose right end is seen."""
    assert plot.folded
    return 100 - plot.folded.width / 100 * (100 - plot.rows[row].values[0].at)


@pytest.mark.parametrize("pinned", [None, 0.5])
def test_rows_that_are_not_folded_away_fill_the_plot(pinned: float | None) -> None:
    plot = made(4.0, 2.0, 0.5, 0.01, pinned=pinned, first=2)
    assert plot.folded
    ticks = {tick.label: tick.at for tick in plot.folded.ticks}
    assert ticks["0.5×" if pinned else "1×"] == pytest.approx(LEFT, abs=0.1)
    assert min(ticks.values()) >= LEFT
    assert seen(plot, 0) > 90
    assert ticks["1×"] == pytest.approx(100 - plot.folded.width / 100 * (100 - plot.level), abs=0.1)
    assert ticks["2×"] == pytest.approx(seen(plot, 1), abs=0.1)


def test_nothing_is_stretched_where_no_row_is_folded_away() -> None:
    assert made(4.0, 0.01, first=2).folded is None
    assert made(4.0, 0.01).folded is None
    assert [tick.label for tick in made(2.0, 0.04).ticks] == [
        *("1/20×", "1/10×", "1/5×", "1/2×", "1×", "2×")
    ]


def test_a_short_axis_has_three_ticks_or_more() -> None:
    assert [tick.label for tick in made(3.4).ticks] == ["1×", "1.5×", "2×", "3×"]
