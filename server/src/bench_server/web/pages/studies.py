"""Pages of the studies: ``/frameworks``, ``/cpu-vs-gpu``, ``/batch-size``, ``/trends``.

``hardware_in_view``: the hardware that links to the other studies keep.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlmodel import Session

from bench_protocol import format as people
from bench_protocol.catalogue import CATALOGUE

from ...answers import queries, studies
from ...answers.studies.updates import Update
from ...ranking.compare import Comparison
from ..plots import Plot, Point, Series, flops, plot
from .common import Choice, address, hardware_choices

VERSION_WORDS = {
    "framework_version": "framework version",
    "driver": "driver",
    "os_version": "system version",
    "cuda": "CUDA version",
    "python": "Python version",
    "agent": "agent version",
}
# Ends a heading that rests on a comparison without a verdict.
TOO_FEW = "; too few runs to be sure"
NOT_CLEAR = ", without a clear difference"


@dataclass(frozen=True)
class FrameworksPage:
    """``/frameworks``: which framework trains fastest here, and how much does the recipe matter?
    ``heading`` states the finding."""

    title: str
    heading: str
    json_href: str
    answer: studies.FrameworksAnswer
    hardware: tuple[Choice, ...]

    @property
    def hardware_in_view(self) -> str | None:
        return self.answer.hardware_slug


@dataclass(frozen=True)
class CpuVsGpuPage:
    """``/cpu-vs-gpu``: from which size of a step is a GPU faster? ``plot`` is null if no cell was
    measured on both. ``heading`` states the finding."""

    title: str
    heading: str
    json_href: str
    answer: studies.PairAnswer
    plot: Plot | None
    cpus: tuple[Choice, ...]
    gpus: tuple[Choice, ...]

    @property
    def hardware_in_view(self) -> str | None:
        return self.answer.gpu_slug


@dataclass(frozen=True)
class BatchSizePage:
    """``/batch-size``: how much faster do larger batches train? ``plots``: one for each study.
    ``heading`` states the finding."""

    title: str
    heading: str
    json_href: str
    answer: studies.BatchAnswer
    plots: tuple[Plot, ...]
    hardware: tuple[Choice, ...]

    @property
    def hardware_in_view(self) -> str | None:
        return self.answer.hardware_slug


@dataclass(frozen=True)
class TrendsPage:
    """``/trends``: are newer drivers and frameworks faster? ``by_words``: the x axis in words;
    ``plot`` is null if nothing is ranked. ``heading`` states the finding."""

    title: str
    heading: str
    json_href: str
    answer: studies.TrendsAnswer
    plot: Plot | None
    by_words: str
    by: tuple[Choice, ...]
    hardware: tuple[Choice, ...]
    workloads: tuple[Choice, ...]
    frameworks: tuple[Choice, ...]

    @property
    def hardware_in_view(self) -> str | None:
        return self.answer.hardware_slug


def frameworks_page(session: Session, choice: studies.HardwareChoice) -> FrameworksPage:
    """Fill the context. Raises NotFound if the hardware has no figures."""
    answer = studies.frameworks(session, choice)
    return FrameworksPage(
        title="Frameworks",
        heading=_fastest_framework(answer),
        json_href=_twin("frameworks", choice),
        answer=answer,
        hardware=hardware_choices(session, answer.hardware_slug),
    )


def cpu_vs_gpu_page(session: Session, choice: studies.PairChoice) -> CpuVsGpuPage:
    """Fill the context. Raises NotFound if one of them has no figures."""
    answer = studies.cpu_against_gpu(session, choice)
    return CpuVsGpuPage(
        title="CPU against GPU",
        heading=_which_pays(answer),
        json_href=_twin("cpu-vs-gpu", choice),
        answer=answer,
        plot=_pair_plot(answer) if answer.rows else None,
        cpus=_on_device(session, answer.cpu_slug, lambda device: device == "cpu"),
        gpus=_on_device(session, answer.gpu_slug, lambda device: device != "cpu"),
    )


def batch_size_page(session: Session, choice: studies.HardwareChoice) -> BatchSizePage:
    """Fill the context. Raises NotFound if the hardware has no figures."""
    answer = studies.batch_sizes(session, choice)
    return BatchSizePage(
        title="Batch size",
        heading=_gain_of_batches(answer),
        json_href=_twin("batch-size", choice),
        answer=answer,
        plots=tuple(_batch_plot(study) for study in answer.studies),
        hardware=hardware_choices(session, answer.hardware_slug),
    )


def trends_page(session: Session, choice: studies.TrendChoice) -> TrendsPage:
    """Fill the context. Raises NotFound if no result matches the filters."""
    answer = studies.trends(session, choice)
    names = [workload.name for workload in CATALOGUE]
    return TrendsPage(
        title="Trends",
        heading=_newest_update(answer),
        json_href=_twin("trends", choice),
        answer=answer,
        plot=_trend_plot(answer) if answer.versions else None,
        by_words=VERSION_WORDS[choice.by],
        by=tuple(Choice(name, words, name == choice.by) for name, words in VERSION_WORDS.items()),
        hardware=hardware_choices(session, answer.hardware_slug),
        workloads=tuple(Choice(name, name, name == answer.workload) for name in names),
        frameworks=tuple(
            Choice(name, name, name == choice.framework) for name in queries.frameworks(session)
        ),
    )


def _fastest_framework(answer: studies.FrameworksAnswer) -> str:
    """``On A100, jax is the fastest framework in 6 of 8 workloads``: of those in several. Where the
    first is not clearly faster, no framework is the fastest."""
    leaders = [table.rows[0] for table in answer.tables if len(table.rows) > 1]
    if not leaders:
        return "Which framework is fastest?"
    clear = [row for row in leaders if row.best is None or row.best.verdict_kind != "no_difference"]
    firsts = Counter(row.framework for row in clear)
    if not firsts:
        return f"No framework is clearly the fastest on {answer.hardware}"
    (name, count), of = firsts.most_common(1)[0], len(leaders)
    workload = next(table.workload for table in answer.tables if len(table.rows) > 1)
    where = f"in {count} of {of} workloads" if of > 1 else f"in {workload}"
    verb, rest = _sureness([row.best for row in clear if row.framework == name and row.best])
    like = "" if verb == "is" else " like"
    return f"{name} {verb}{like} the fastest framework {where} on {answer.hardware}{rest}"


def _which_pays(answer: studies.PairAnswer) -> str:
    """From which work on the GPU is faster. Without enough runs for any of the comparisons that
    say so, which looks faster."""
    if not answer.rows:
        return "CPU or GPU?"
    least = answer.pays_from_flops
    if least is None:
        verb, rest = _sureness([row.held for row in answer.rows[-1:]])
        return f"{answer.cpu} {verb} faster than {answer.gpu}, even in the largest workload{rest}"
    where = (
        "in every workload"
        if least == answer.rows[0].flops_per_step
        else f"from {flops(least)} per training step"
    )
    deciding = [row for row in answer.rows if row.flops_per_step >= least]
    verb, rest = _sureness([row.held for row in deciding])
    return f"{answer.gpu} {verb} faster than {answer.cpu} {where}{rest}"


def _sureness(deciding: Sequence[Comparison]) -> tuple[str, str]:
    """The verb of a heading, and its end."""
    sure = sum(one.verdict_kind in ("faster", "slower") for one in deciding)
    if sure == len(deciding):
        return "is", ""
    if any(one.verdict_kind == "too_few_runs" for one in deciding):
        return ("is", "; some comparisons have too few runs") if sure else ("looks", TOO_FEW)
    return ("is", "; some differences are not clear") if sure else ("looks", NOT_CLEAR)


def _gain_of_batches(answer: studies.BatchAnswer) -> str:
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


def _fastest(study: studies.BatchStudy) -> studies.BatchLine:
    """The set-up with the highest rate."""
    return max(study.lines, key=lambda line: max(one.samples_per_second for one in line.figures))


def _newest_update(answer: studies.TrendsAnswer) -> str:
    """What the newest version changed."""
    words = VERSION_WORDS[answer.by]
    newest = answer.versions[-1] if answer.versions else None
    held = newest.update.held if newest and newest.update else None
    if newest is None or held is None:
        return f"What did the newest {words} change?"
    name = words[:1].upper() + words[1:]
    if answer.by == "framework_version" and answer.setup:
        name = answer.setup["framework"]
    version = f"{name} {newest.version}"
    if held.verdict_kind == "no_difference":
        return f"{version} brings no clear change"
    before = answer.versions[-2].version
    few = held.verdict_kind == "too_few_runs"
    where = f", on {held.n} machine{'s' * (held.n != 1)}" if few else ""
    return f"{version} {people.faster_than(held.speed_up)} {before}{where}"


def _twin(name: str, choice: studies.HardwareChoice | studies.PairChoice) -> str:
    return address(f"/api/v1/{name}", choice.model_dump(exclude_none=True, exclude_defaults=True))


def _on_device(
    session: Session, chosen: str | None, fits: Callable[[str], bool]
) -> tuple[Choice, ...]:
    return tuple(
        Choice(slug, name, slug == chosen)
        for slug, name, device in studies.devices(session)
        if fits(device)
    )


def _pair_plot(answer: studies.PairAnswer) -> Plot:
    points = tuple(
        Point(
            row.flops_per_step,
            row.held.speed_up,
            f"{row.workload}, batch {row.batch_size:,}: {people.ratio(row.held.speed_up)}",
            row.held.speed_up_low,
            row.held.speed_up_high,
            row.workload,
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


def _batch_plot(study: studies.BatchStudy) -> Plot:
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


def _trend_plot(answer: studies.TrendsAnswer) -> Plot:
    points = tuple(
        Point(
            place,
            version.samples_per_second,
            f"{version.version}: {people.rate(version.samples_per_second)}/s",
            version.samples_per_second_low,
            version.samples_per_second_high,
            _change_label(version.update),
        )
        for place, version in enumerate(answer.versions)
    )
    machines = [
        Series(
            machine.machine_id,
            tuple(
                Point(place, rate, f"machine {machine.machine_id[:8]}: {people.rate(rate)}/s")
                for place, rate in enumerate(machine.samples_per_second)
                if rate is not None
            ),
            thin=True,
        )
        for machine in answer.machines
    ]
    return plot(
        "samples per second by version, with what each one changed on the same machines; "
        "the axis does not begin at zero",
        [Series(answer.hardware or "", points), *machines],
        x_words=lambda place: answer.versions[int(place)].version,
        y_words=people.rate,
        joined=False,
        x_ticks=list(range(len(points))),
    )


def _change_label(update: Update | None) -> str:
    """``1.11×``; none where no machine has both versions."""
    return people.ratio(update.held.speed_up) if update and update.held else ""
