"""Pages of the studies: ``/frameworks``, ``/cpu-vs-gpu``, ``/batch-size``, ``/trends``."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlmodel import Session

from bench_protocol.base import format as people
from bench_protocol.catalogue.catalogue import CATALOGUE

from ...answers import query_names
from ...answers.studies.batch_size import BatchAnswer, BatchLine, BatchStudy, batch_sizes
from ...answers.studies.common import HardwareChoice, devices
from ...answers.studies.cpu_vs_gpu import PairAnswer, PairChoice, cpu_against_gpu
from ...answers.studies.frameworks import FrameworksAnswer, frameworks
from ...answers.studies.trends import TrendChoice, TrendsAnswer, trends
from ...ranking.compare import Comparison
from ..plots import Plot, flops
from . import study_plots
from .common import Choice, Page, address, choices

NOT_CLEAR = ", without a clear difference"
VERSION_WORDS = {
    "framework_version": "framework version",
    "driver": "driver",
    "os_version": "system version",
    "cuda": "CUDA version",
    "python": "Python version",
    "agent": "agent version",
}


class Field(NamedTuple):
    """A field of the form. ``empty``: the label of no choice, where there may be none."""

    label: str
    name: str
    options: tuple[Choice, ...]
    empty: str = ""


@dataclass(frozen=True)
class StudyPage(Page):
    """``/frameworks`` and every other study. ``form``: its fields, none before any measurement."""

    heading: str
    answer: Any
    form: tuple[Field, ...]

    @property
    def hardware_in_view(self) -> str | None:
        slug: str | None = self.answer.hardware_slug
        return slug


@dataclass(frozen=True)
class PlottedStudyPage(StudyPage):
    """``/batch-size``, ``/cpu-vs-gpu``, ``/trends``: a study with plots."""

    plots: tuple[Plot, ...]


def frameworks_page(session: Session, choice: HardwareChoice) -> StudyPage:
    """Fill the context. Raises NotFound if the hardware has no figures."""
    answer = frameworks(session, choice)
    return StudyPage(
        title="Frameworks",
        heading=_fastest_framework(answer),
        json_href=_twin("frameworks", choice),
        answer=answer,
        form=_form(_hardware_field(session, answer.hardware_slug)),
    )


def _fastest_framework(answer: FrameworksAnswer) -> str:
    """``JAX is the fastest framework in 6 of 8 workloads on A100``, where it is clearly faster."""
    # The second of a table is compared with the first.
    pairs = [table.rows[:2] for table in answer.tables if len(table.rows) > 1]
    if not pairs:
        has = f"No workload has two frameworks on {answer.hardware} yet"
        return has if answer.tables else "Which framework is fastest?"
    clear = [
        (first.framework, second.best)
        for first, second in pairs
        if second.best and second.best.verdict_kind != "no_difference"
    ]
    firsts = Counter(framework for framework, _ in clear)
    if not firsts:
        return f"No framework is clearly the fastest on {answer.hardware}"
    (name, count), of = firsts.most_common(1)[0], len(pairs)
    workload = next(table.workload for table in answer.tables if len(table.rows) > 1)
    where = f"in {count} of {of} workloads" if of > 1 else f"in {workload}"
    verb, rest = _sureness([best for framework, best in clear if framework == name])
    like = "" if verb == "is" else " like"
    words = f"{people.framework(name)} {verb}{like} the fastest framework"
    return f"{words} {where} on {answer.hardware}{rest}"


def cpu_vs_gpu_page(session: Session, choice: PairChoice) -> PlottedStudyPage:
    """Fill the context. Raises NotFound if one of them has no figures."""
    answer, measured = cpu_against_gpu(session, choice), devices(session)
    cpus = [(slug, name) for slug, name, device in measured if device == "cpu"]
    gpus = [(slug, name) for slug, name, device in measured if device != "cpu"]
    return PlottedStudyPage(
        title="CPU against GPU",
        heading=_which_pays(answer),
        json_href=_twin("cpu-vs-gpu", choice),
        answer=answer,
        form=_form(
            Field("CPU", "cpu", choices(cpus, answer.cpu_slug)),
            Field("GPU", "gpu", choices(gpus, answer.gpu_slug)),
        ),
        plots=(study_plots.cpu_against_gpu(answer),) if answer.rows else (),
    )


def _which_pays(answer: PairAnswer) -> str:
    """From which work on the GPU is faster; which looks faster without enough runs to say so."""
    if not answer.rows:
        return "No CPU and GPU to compare yet"
    least = answer.pays_from_flops
    if least is None:
        verb, rest = _sureness([row.compared for row in answer.rows[-1:]])
        return f"{answer.cpu} {verb} faster than {answer.gpu}, even in the largest workload{rest}"
    where = (
        "in every workload"
        if least == answer.rows[0].flops_per_step
        else f"from {flops(least)} per training step"
    )
    deciding = [row for row in answer.rows if row.flops_per_step >= least]
    verb, rest = _sureness([row.compared for row in deciding])
    return f"{answer.gpu} {verb} faster than {answer.cpu} {where}{rest}"


def batch_size_page(session: Session, choice: HardwareChoice) -> PlottedStudyPage:
    """Fill the context. Raises NotFound if the hardware has no figures."""
    answer = batch_sizes(session, choice)
    return PlottedStudyPage(
        title="Batch size",
        heading=_gain_of_batches(answer),
        json_href=_twin("batch-size", choice),
        answer=answer,
        plots=tuple(study_plots.batch_sizes(study) for study in answer.studies),
        form=_form(_hardware_field(session, answer.hardware_slug)),
    )


def _gain_of_batches(answer: BatchAnswer) -> str:
    """The largest clear gain of a larger batch, else one of the fastest set-up of a workload."""
    gains = [
        (
            *(figure.compared.verdict_kind == "faster", line is _fastest(study)),
            *(
                figure.compared.speed_up,
                study.workload,
                f"{people.framework(line.framework)} {line.recipe}",
            ),
            *(line.figures[0].batch_size, figure.batch_size, figure.compared.verdict_kind),
        )
        for study in answer.studies
        for line in study.lines
        for figure in line.figures
        if figure.compared
    ]
    _, _, gain, workload, setup, small, large, kind = max(
        gains, default=(False, False, 0.0, "", "", 0, 0, "too_few_runs")
    )
    if not gains:
        on = f" on {answer.hardware}" if answer.hardware else ""
        return f"No set-up{on} has two batch sizes yet"
    if gain <= 1:
        return f"No larger batch trains faster on {answer.hardware}"
    if kind == "no_difference":
        return f"No larger batch trains clearly faster on {answer.hardware}"
    return (
        f"Batch {large:,} trains {workload} {'about ' if kind == 'too_few_runs' else ''}"
        f"{people.times(gain)} times as fast as batch {small:,} with {setup} on {answer.hardware}"
    )


def _fastest(study: BatchStudy) -> BatchLine:
    return max(study.lines, key=lambda line: max(one.samples_per_second for one in line.figures))


def trends_page(session: Session, choice: TrendChoice) -> PlottedStudyPage:
    """Fill the context. Raises NotFound if no result matches the filters."""
    answer = trends(session, choice)
    workloads = [(workload.name, workload.name) for workload in CATALOGUE]
    frameworks = [(name, name) for name in query_names.frameworks(session)]
    return PlottedStudyPage(
        title="Trends",
        heading=_newest_update(answer),
        json_href=_twin("trends", choice),
        answer=answer,
        form=_form(
            _hardware_field(session, answer.hardware_slug),
            Field("Workload", "workload", choices(workloads, answer.workload)),
            Field("Framework", "framework", choices(frameworks, choice.framework), "any"),
            Field("By", "by", choices(VERSION_WORDS.items(), choice.by)),
        ),
        plots=(study_plots.trend(answer),) if answer.versions else (),
    )


def _newest_update(answer: TrendsAnswer) -> str:
    words = VERSION_WORDS[answer.by]
    newest = answer.versions[-1] if answer.versions else None
    compared = newest.update.compared if newest and newest.update else None
    if newest is None:
        return f"No {words} to compare yet"
    if compared is None:
        only = len(answer.versions) == 1
        return f"Only one {words} so far" if only else f"No machine ran the two newest {words}s"
    name = words[:1].upper() + words[1:]
    if answer.by == "framework_version" and answer.setup:
        name = people.framework(answer.setup["framework"])
    version = f"{name} {newest.version}"
    if compared.verdict_kind == "no_difference":
        return f"{version} brings no clear change"
    before = answer.versions[-2].version
    few = compared.verdict_kind == "too_few_runs"
    where = f", on {compared.n} machine{'s' * (compared.n != 1)}" if few else ""
    return f"{version} {people.faster_than(compared.speed_up)} {before}{where}"


def _sureness(deciding: Sequence[Comparison]) -> tuple[str, str]:
    sure = sum(one.verdict_kind in ("faster", "slower") for one in deciding)
    if sure == len(deciding):
        return "is", ""
    if any(one.verdict_kind == "too_few_runs" for one in deciding):
        return ("is" if sure else "looks"), ""
    return ("is", "; some differences are not clear") if sure else ("looks", NOT_CLEAR)


def _hardware_field(session: Session, slug: str | None) -> Field:
    return Field("Hardware", "hardware", choices(query_names.ranked_hardware(session), slug))


def _form(*fields: Field) -> tuple[Field, ...]:
    return fields if all(field.options for field in fields) else ()


def _twin(name: str, choice: HardwareChoice | PairChoice) -> str:
    return address(f"/api/v1/{name}", choice.model_dump(exclude_none=True, exclude_defaults=True))
