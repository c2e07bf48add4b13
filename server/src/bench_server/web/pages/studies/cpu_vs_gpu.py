"""``/cpu-vs-gpu``: one processor against one GPU, by the size of a training step."""

from collections import Counter
from collections.abc import Sequence

from sqlmodel import Session

from bench_protocol.base import format as people

from ....answers.studies import PairAnswer, PairChoice, cpu_against_gpu, devices
from ...plots import Plot, Point, Series, flops, plot
from ..common import Choice
from .common import Field, PlottedStudyPage, form, sureness, twin


def cpu_vs_gpu_page(session: Session, choice: PairChoice) -> PlottedStudyPage:
    """Fill the context. Raises NotFound if one of them has no figures."""
    answer, measured = cpu_against_gpu(session, choice), devices(session)
    return PlottedStudyPage(
        title="CPU against GPU",
        heading=_which_pays(answer),
        json_href=twin("cpu-vs-gpu", choice),
        answer=answer,
        form=form(
            Field("CPU", "cpu", _choices(measured, answer.cpu_slug, of_cpu=True)),
            Field("GPU", "gpu", _choices(measured, answer.gpu_slug, of_cpu=False)),
        ),
        plots=(_pair_plot(answer),) if answer.rows else (),
    )


def _which_pays(answer: PairAnswer) -> str:
    """From which work on the GPU is faster. Without enough runs for any of the comparisons that
    say so, which looks faster."""
    if not answer.rows:
        return "CPU or GPU?"
    least = answer.pays_from_flops
    if least is None:
        verb, rest = sureness([row.held for row in answer.rows[-1:]])
        return f"{answer.cpu} {verb} faster than {answer.gpu}, even in the largest workload{rest}"
    where = (
        "in every workload"
        if least == answer.rows[0].flops_per_step
        else f"from {flops(least)} per training step"
    )
    deciding = [row for row in answer.rows if row.flops_per_step >= least]
    verb, rest = sureness([row.held for row in deciding])
    return f"{answer.gpu} {verb} faster than {answer.cpu} {where}{rest}"


def _choices(
    measured: Sequence[tuple[str, str, str]], chosen: str | None, of_cpu: bool
) -> tuple[Choice, ...]:
    return tuple(
        Choice(slug, name, slug == chosen)
        for slug, name, device in measured
        if (device == "cpu") == of_cpu
    )


def _pair_plot(answer: PairAnswer) -> Plot:
    """A dot names its batch size where its workload has several."""
    dots = Counter(row.workload for row in answer.rows)
    points = tuple(
        Point(
            row.flops_per_step,
            row.held.speed_up,
            f"{row.workload}, batch {row.batch_size:,}: {people.ratio(row.held.speed_up)}",
            row.held.speed_up_low,
            row.held.speed_up_high,
            f"{row.workload}, batch {row.batch_size:,}" if dots[row.workload] > 1 else row.workload,
        )
        for row in answer.rows
    )
    return plot(
        "how many times as fast the GPU is, by FLOPs in a training step",
        [Series("GPU against CPU", points)],
        x_words=flops,
        y_words=people.ratio,
        x_log=True,
        y_log=True,
        joined=False,
        level=1.0,
    )
