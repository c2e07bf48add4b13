"""``/batch-size``: the set-ups of one hardware at each batch size."""

from sqlmodel import Session

from bench_protocol.base import format as people

from ....answers.studies import BatchAnswer, BatchLine, BatchStudy, HardwareChoice, batch_sizes
from ...plots import Plot, Point, Series, plot
from .common import TOO_FEW, PlottedStudyPage, form, hardware_field, twin


def batch_size_page(session: Session, choice: HardwareChoice) -> PlottedStudyPage:
    """Fill the context. Raises NotFound if the hardware has no figures."""
    answer = batch_sizes(session, choice)
    return PlottedStudyPage(
        title="Batch size",
        heading=_gain_of_batches(answer),
        json_href=twin("batch-size", choice),
        answer=answer,
        plots=tuple(_batch_plot(study) for study in answer.studies),
        form=form(hardware_field(session, answer.hardware_slug)),
    )


def _gain_of_batches(answer: BatchAnswer) -> str:
    """The largest gain of a larger batch: a clear one if there is any, else one of the set-up that
    is the fastest in its workload."""
    gains = [
        (
            *(figure.held.verdict_kind == "faster", line is _fastest(study)),
            *(figure.held.speed_up, study.workload, f"{line.framework} {line.recipe}"),
            *(line.figures[0].batch_size, figure.batch_size, figure.held.verdict_kind),
        )
        for study in answer.studies
        for line in study.lines
        for figure in line.figures
        if figure.held
    ]
    _, _, gain, workload, setup, small, large, kind = max(
        gains, default=(False, False, 0.0, "", "", 0, 0, "too_few_runs")
    )
    if gain <= 1:
        return "Does a larger batch train faster?"
    if kind == "no_difference":
        return f"No larger batch trains clearly faster on {answer.hardware}"
    return (
        f"Batch {large:,} trains {workload} {people.times(gain)} times as fast as batch {small:,} "
        f"with {setup} on {answer.hardware}" + (TOO_FEW if kind == "too_few_runs" else "")
    )


def _fastest(study: BatchStudy) -> BatchLine:
    """The set-up with the highest rate."""
    return max(study.lines, key=lambda line: max(one.samples_per_second for one in line.figures))


def _batch_plot(study: BatchStudy) -> Plot:
    series = [
        Series(
            f"{line.framework} {line.recipe}",
            tuple(
                Point(
                    figure.batch_size,
                    figure.samples_per_second,
                    f"batch {figure.batch_size:,}: {people.rate(figure.samples_per_second)}/s",
                    figure.samples_per_second_low,
                    figure.samples_per_second_high,
                )
                for figure in line.figures
            ),
        )
        for line in study.lines
    ]
    sizes = sorted({figure.batch_size for line in study.lines for figure in line.figures})
    return plot(
        f"samples per second in {study.workload} by batch size, both axes logarithmic",
        series,
        x_words=lambda size: f"{size:,.0f}",
        y_words=people.rate,
        x_log=True,
        y_log=True,
        x_ticks=sizes,
    )
