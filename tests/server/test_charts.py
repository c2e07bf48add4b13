"""Axes of charts, and the labels of their points."""

import pytest

from bench_server.web import plots
from bench_server.web.dots import Row, Value, dot_plot


@pytest.mark.parametrize(
    ("speeds", "labels"),
    [((2.0, 0.04), "0.05× 0.1× 0.2× 0.5× 1× 2×"), ((3.4,), "1× 1.5× 2× 3×")],
)
def test_labels_of_an_axis_are_ratios(speeds: tuple[float, ...], labels: str) -> None:
    """A short axis has three ticks or more."""
    plot = dot_plot("", [Row("", "", (Value(at, None, None, "", ""),), "") for at in speeds])
    assert plot
    assert [tick.label for tick in plot.ticks] == labels.split()


def test_a_short_axis_without_round_ratios_has_even_steps() -> None:
    assert plots.scale([91, 109], 0, 100, log=True).ticks() == [95, 100, 105]


def boxes(drawn: plots.Plot, size: str) -> list[plots.Box]:
    width, height = plots.SIZES[size]
    found = []
    for label in drawn.labels[size]:
        length, depth = plots.LETTER * max(map(len, label.lines)), plots.LINE * len(label.lines)
        left = label.x / 100 * width + label.dx - length * plots.BEFORE[label.anchor]
        top = label.y / 100 * height + label.dy - plots.BASELINE
        assert left >= -0.2
        assert left + length <= width + 0.2
        assert top >= 0
        assert top + depth <= height
        found.append((left + 0.2, top, left + length - 0.2, top + depth))
    return found


@pytest.mark.parametrize("size", plots.SIZES)
def test_labels_of_a_plot_cover_neither_points_nor_each_other(size: str) -> None:
    points = tuple(
        plots.Point(10 + 3 * (n % 7), 100 + 9 * (n * 5 % 11), "", label=f"GeForce RTX {n}090")
        for n in range(30)
    )
    drawn = plots.plot("", [plots.Series("", points)], x_words=str, y_words=str)
    found = boxes(drawn, size)
    assert 2 < len(found) < len(points)
    assert drawn.nameless
    width, height = plots.SIZES[size]
    dots = [(p.x / 100 * width, p.y / 100 * height) for p in drawn.lines[0].points]
    for number, (left, top, right, bottom) in enumerate(found):
        covered = [1 for x, y in dots if left < x < right and top < y < bottom]
        assert not covered or number == 0  # what the plot is about is named in any case
        for other in found[number + 1 :]:
            apart = other[0] >= right or left >= other[2]
            assert apart or other[1] >= bottom or top >= other[3]


@pytest.mark.parametrize("size", plots.SIZES)
@pytest.mark.parametrize("x", [100, 104, 108])
@pytest.mark.parametrize(
    "name",
    ["Apple M2 Max (30-core GPU)", "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"],
)
def test_what_a_plot_is_about_has_its_whole_name_in_a_crowd(name: str, x: int, size: str) -> None:
    crowd = tuple(plots.Point(100 + n % 9, 100 + n // 9, "", label="x" * 30) for n in range(81))
    own = plots.Series(name, (plots.Point(x, 104, "", label=name),))
    drawn = plots.plot("", [own, plots.Series("", crowd)], x_words=str, y_words=str)
    assert " ".join(drawn.labels[size][0].lines) == name
    assert boxes(drawn, size)


def test_where_a_label_must_cover_points_it_covers_the_fewest() -> None:
    above_and_below = [(x, 50 + dy) for x in range(30, 71, 2) for dy in (-6, 6)]
    beside = [(40, 50), (54, 50), (57, 50), (60, 50)]  # one to the left, three to the right
    others = [(0, 0), (100, 100), *above_and_below, *beside]
    crowd = tuple(plots.Point(x, y, "") for x, y in others)
    own = plots.Series("M2", (plots.Point(50, 50, "", label="Apple M2"),))
    drawn = plots.plot("", [own, plots.Series("", crowd)], x_words=str, y_words=str)
    (label,) = drawn.labels["wide"]
    assert (label.anchor, label.dx) == ("end", -plots.GAP)
