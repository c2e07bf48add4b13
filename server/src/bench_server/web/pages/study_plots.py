"""Charts of the studies: speed by batch size, by work in a step, by version."""

from collections import Counter

from bench_protocol.base import format as people
from bench_protocol.catalogue import speeds

from ...answers.studies.batch_size import BatchStudy
from ...answers.studies.cpu_vs_gpu import PairAnswer
from ...answers.studies.trends import TrendsAnswer
from ...answers.types.shared_fields import Rated
from ...ranking.compare import Comparison
from ..plots import Mark, Plot, Point, Series, flops, plot


def batch_sizes(study: BatchStudy) -> Plot:
    series = [
        Series(
            f"{line.framework} {line.recipe}",
            tuple(
                _speed(figure.batch_size, f"batch {figure.batch_size:,}", figure, study.workload)
                for figure in line.figures
            ),
        )
        for line in study.lines
    ]
    sizes = sorted({figure.batch_size for line in study.lines for figure in line.figures})
    return plot(
        f"{speeds.unit(study.workload)}s per second in {study.workload} by batch size, both axes "
        "logarithmic",
        series,
        x_words=lambda size: f"{size:,.0f}",
        y_words=people.rate,
        x_log=True,
        y_log=True,
        x_ticks=sizes,
    )


def cpu_against_gpu(answer: PairAnswer) -> Plot:
    """A dot names its batch size where its workload has several."""
    dots = Counter(row.workload for row in answer.rows)
    points = tuple(
        Point(
            row.flops_per_step,
            row.compared.speed_up,
            f"{row.workload}, batch {row.batch_size:,}: {people.ratio(row.compared.speed_up)}",
            row.compared.speed_up_low,
            row.compared.speed_up_high,
            f"{row.workload}, batch {row.batch_size:,}" if dots[row.workload] > 1 else row.workload,
        )
        for row in answer.rows
    )
    return plot(
        "how many times as fast the GPU is, by FLOPs in a training step",
        [Series("GPU against CPU", points)],
        x_words=flops,
        y_words=people.round_ratio,
        x_log=True,
        y_log=True,
        joined=False,
        level=1.0,
    )


def trend(answer: TrendsAnswer) -> Plot:
    points = tuple(
        _speed(place, version.version, version, answer.workload or "")
        for place, version in enumerate(answer.versions)
    )
    return plot(
        f"{speeds.unit(answer.workload or '')}s per second by version, with what each one changed "
        "on the same machines; the axis does not begin at zero",
        [Series(answer.hardware or "", points)],
        x_words=lambda place: answer.versions[int(place)].version,
        y_words=people.rate,
        joined=False,
        x_ticks=list(range(len(points))),
        marks=[
            _mark(place, version.update.compared)
            for place, version in enumerate(answer.versions)
            if version.update and version.update.compared
        ],
    )


def _speed(x: float, name: str, rated: Rated, workload: str) -> Point:
    """A speed with its range, in what the workload counts."""
    ends = (rated.samples_per_second_low, rated.samples_per_second_high)
    low, high = (None if end is None else speeds.per_second(end, workload) for end in ends)
    rate = rated.samples_per_second
    words = f"{name}: {speeds.short(rate, workload)}"
    return Point(x, speeds.per_second(rate, workload), words, low, high)


def _mark(place: int, compared: Comparison) -> Mark:
    """``1.11×`` between a version and the one before: no figure of the plot has that ratio."""
    kind = compared.verdict_kind if compared.verdict_kind in ("faster", "slower") else ""
    return Mark(place - 0.5, people.ratio(compared.speed_up), kind)
