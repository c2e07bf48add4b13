"""Axes of charts, and the labels of their points."""

from bench_server.web.dots import DotPlot, Row, Value, dot_plot
from bench_server.web.plots import HEIGHT, LETTER, LINE, WIDTH, Point, Series, plot, scale


def made(*speeds: float) -> DotPlot:
    plot = dot_plot("", [Row("", "", (Value(at, None, None, "", ""),), "") for at in speeds])
    assert plot
    return plot


def test_labels_of_an_axis_are_ratios() -> None:
    assert [tick.label for tick in made(2.0, 0.04).ticks] == [
        *("1/20×", "1/10×", "1/5×", "1/2×", "1×", "2×")
    ]


def test_a_short_axis_has_three_ticks_or_more() -> None:
    assert [tick.label for tick in made(3.4).ticks] == ["1×", "1.5×", "2×", "3×"]


def test_a_short_axis_without_round_ratios_has_even_steps() -> None:
    assert scale([91, 109], 0, 100, log=True).ticks() == [95, 100, 105]


def test_labels_of_a_plot_cover_neither_points_nor_each_other() -> None:
    names = [f"GeForce RTX {n}090" for n in range(30)]
    points = [
        Point(10 + 3 * (n % 7), 100 + 9 * (n * 5 % 11), "", label=name)
        for n, name in enumerate(names)
    ]
    drawn = plot("", [Series("", tuple(points))], x_words=str, y_words=str)
    assert 0 < len(drawn.labels) < len(points)
    boxes = []
    for label in drawn.labels:
        width = LETTER * len(label.text)
        left = label.x / 100 * WIDTH + label.dx - (width if label.anchor == "end" else 0)
        bottom = label.y / 100 * HEIGHT + LINE / 2
        assert left >= -0.1
        assert left + width <= WIDTH + 0.1
        boxes.append((left, bottom - LINE, left + width, bottom))
    dots = [(p.x / 100 * WIDTH, p.y / 100 * HEIGHT) for p in drawn.lines[0].points]
    for number, (left, top, right, bottom) in enumerate(boxes):
        assert not any(left < x < right and top < y < bottom for x, y in dots)
        for other in boxes[number + 1 :]:
            apart = other[0] >= right - 0.1 or left >= other[2] - 0.1
            assert apart or other[1] >= bottom - 0.1 or top >= other[3] - 0.1
