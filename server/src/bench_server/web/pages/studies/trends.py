"""``/trends``: one set-up by version of its framework, driver, CUDA, system, Python or agent."""

from collections.abc import Iterable

from sqlmodel import Session

from bench_protocol.base import format as people
from bench_protocol.catalogue.catalogue import CATALOGUE

from ....answers import query_names
from ....answers.studies import TrendChoice, TrendsAnswer, trends
from ....ranking.compare import Comparison
from ...plots import Mark, Plot, Point, Series, plot
from ..common import Choice
from .common import Field, PlottedStudyPage, form, hardware_field, twin

VERSION_WORDS = {
    "framework_version": "framework version",
    "driver": "driver",
    "os_version": "system version",
    "cuda": "CUDA version",
    "python": "Python version",
    "agent": "agent version",
}


def trends_page(session: Session, choice: TrendChoice) -> PlottedStudyPage:
    """Fill the context. Raises NotFound if no result matches the filters."""
    answer = trends(session, choice)
    by = tuple(Choice(name, words, name == choice.by) for name, words in VERSION_WORDS.items())
    names = [workload.name for workload in CATALOGUE]
    return PlottedStudyPage(
        title="Trends",
        heading=_newest_update(answer),
        json_href=twin("trends", choice),
        answer=answer,
        form=form(
            hardware_field(session, answer.hardware_slug),
            Field("Workload", "workload", _same(names, answer.workload)),
            Field(
                "Framework",
                "framework",
                _same(query_names.frameworks(session), choice.framework),
                "any",
            ),
            Field("By", "by", by),
        ),
        plots=(_trend_plot(answer),) if answer.versions else (),
    )


def _same(names: Iterable[str], chosen: str | None) -> tuple[Choice, ...]:
    """Options whose labels are their values."""
    return tuple(Choice(name, name, name == chosen) for name in names)


def _newest_update(answer: TrendsAnswer) -> str:
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


def _trend_plot(answer: TrendsAnswer) -> Plot:
    points = tuple(
        Point(
            place,
            version.samples_per_second,
            f"{version.version}: {people.rate(version.samples_per_second)}/s",
            version.samples_per_second_low,
            version.samples_per_second_high,
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
        marks=[
            _mark(place, version.update.held)
            for place, version in enumerate(answer.versions)
            if version.update and version.update.held
        ],
    )


def _mark(place: int, held: Comparison) -> Mark:
    """``1.11×`` between a version and the one before: no figure of the plot has that ratio."""
    kind = held.verdict_kind if held.verdict_kind in ("faster", "slower") else ""
    return Mark(place - 0.5, people.ratio(held.speed_up), kind)
