"""``/machines/{id}``: the figures of one machine and the history of one of its cells."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlmodel import Session

from bench_protocol.base import format as people
from bench_protocol.catalogue import speeds
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.payload.machine import Environment, Machine
from bench_protocol.payload.rank_text import faster_setup_words, kind_words, rank_words

from ...answers import machines
from ...answers.cell_figures import CellFigure
from ...answers.filters import HistoryFilters
from ...answers.history import HistoryAnswer, HistoryPoint, history
from ...answers.machine_places import MachinePlace, first_of, like_it
from ...answers.prices import NO_PRICES, Prices
from ...errors import NotFound
from ...ranking.figures import Figure
from ...ranking.score import best_of
from ..changes import ChangeWords, in_words
from ..description_lists import Fact, environment_facts, machine_facts
from ..dots import DotPlot, Row, Value, dot_plot
from ..plots import Mark, Plot, Point, Series, plot
from .common import Choice, WorkloadFigures, address, by_workload, vendor

CELL = ("workload", "framework", "device", "recipe", "batch_size", "precision", "data", "timing")


@dataclass(frozen=True)
class ShownHistory:
    """``plot``: null for a single run; ``trends_href``: null without figures by version."""

    answer: HistoryAnswer
    json_href: str
    trends_href: str | None
    plot: Plot | None
    changes: tuple[ChangeWords, ...]
    cells: tuple[Choice, ...]


@dataclass(frozen=True)
class Share:
    """What a reader can share: a sentence, a badge, a card and its figure."""

    words: str
    badge_href: str
    image_href: str
    figure: CellFigure


@dataclass(frozen=True)
class MachinePage:
    """``/machines/{id}``: how fast is this machine, and did it change? ``strip``: the speeds of
    its kind; ``faster``: which set-up of its hardware is faster, and ``command`` measures it."""

    title: str
    heading: str
    strip: DotPlot | None
    faster: str
    command: str
    rank: str
    json_href: str
    feed_href: str
    answer: machines.MachineAnswer
    history: ShownHistory
    groups: tuple[WorkloadFigures, ...]
    energy_currency: str | None
    machine: tuple[Fact, ...]
    environment: tuple[Fact, ...]
    sharing: Share


def machine_page(
    session: Session, machine_id: str, filters: HistoryFilters, prices: Prices = NO_PRICES
) -> MachinePage:
    """Fill the context. Raises NotFound if the machine has no figures (in the chosen cell)."""
    figures = machines.machine_figures(session, machine_id)
    answer = machines.answer_of(session, figures, prices)
    shown = shown_figure(answer, figures)
    wanted = filters.model_dump(exclude_none=True)
    fitting = [f for f in answer.figures if _cell(f).items() >= wanted.items()]
    if not fitting:
        raise NotFound("this machine was not measured in that cell", field="workload")
    charted = max(fitting, key=lambda figure: figure.repeats)
    cell = _cell(charted)
    api, here = f"/api/v1/machines/{machine_id}", f"/machines/{machine_id}"
    shown_history = history(session, machine_id, HistoryFilters.model_validate(cell))
    first = first_place(answer)
    faster = faster_setup_words(asdict(first)) if first else ""
    rank = (
        f"{first.hardware} is {rank_words(asdict(first))}"
        if first and first.rank and not first.alone
        else ""
    )
    changes = tuple(in_words(one, answer.machine) for one in shown_history.changes)
    return MachinePage(
        title=f"{answer.name}, machine {machine_id[:8]}",
        heading=finding(answer),
        strip=_strip(session, machine_id, figures, first) if first else None,
        faster=faster,
        command=_command(first) if first else "",
        rank=rank,
        json_href=api,
        feed_href=f"{here}/feed.atom",
        answer=answer,
        history=ShownHistory(
            answer=shown_history,
            json_href=address(f"{api}/history", cell),
            trends_href=_trends_href(charted, shown_history),
            plot=_history_plot(shown_history, changes),
            changes=changes,
            cells=tuple(
                Choice(address(here, _cell(f)) + "#history", _cell_words(f), _cell(f) == cell)
                for f in answer.figures
            ),
        ),
        groups=by_workload(answer.figures),
        energy_currency=prices.energy_currency,
        machine=machine_facts(Machine.model_validate_json(json.dumps(answer.machine))),
        environment=environment_facts(
            Environment.model_validate_json(json.dumps(answer.environment))
        ),
        sharing=Share(_share_words(answer, first), f"{here}/badge.svg", f"{here}/card.png", shown),
    )


def first_place(answer: machines.MachineAnswer) -> MachinePlace | None:
    """The place that page, card and badge are about."""
    return first_of(answer.places, lambda place: place.machines)


def _command(place: MachinePlace) -> str:
    """Measures the faster set-up; empty without one."""
    if place.faster is None:
        return ""
    device = f" --device {place.faster.device}" if place.faster.device != place.device else ""
    framework = place.faster.framework
    return f"bench-agent run --framework {framework}{device} --workload {place.workload}"


def finding(answer: machines.MachineAnswer) -> str:
    """The machine among those of its kind: ``This M2 Max is typical: ...``."""
    first = first_place(answer)
    return kind_words(first.hardware, asdict(first)) if first else answer.name


def shown_figure(answer: machines.MachineAnswer, figures: Sequence[Figure]) -> CellFigure:
    """The figure that card and link preview show: of the workload of :func:`finding`."""
    first = first_place(answer)
    found = [one for one in figures if first and one.subject.workload == first.workload]
    return machines.shown_figure(found or figures)


def _strip(
    session: Session, machine_id: str, figures: Sequence[Figure], place: MachinePlace
) -> DotPlot | None:
    own = best_of(figures)[place.workload]
    machines = like_it(session, own)
    if len(machines) < 2:
        return None
    median = place.samples_per_second / place.of_median
    colour = vendor(place.hardware)
    values = [
        Value(
            speed / median,
            None,
            None,
            colour,
            f"{'this machine' if id == machine_id else f'machine {id[:8]}'}: "
            f"{speeds.words(speed, place.workload)}",
            ringed=id == machine_id,
        )
        for id, speed in sorted(machines, key=lambda one: one[0] == machine_id)
    ]
    row = Row(
        f"{len(machines)} machines"
        if len(machines) == place.machines
        else f"the fastest {len(machines)} of {place.machines:,}",
        f"/hardware/{place.hardware_slug}",
        tuple(values),
        people.ratio(place.of_median),
        note="this one has a ring",
    )
    return dot_plot("Times the median of its kind", [row])


def _share_words(answer: machines.MachineAnswer, first: MachinePlace | None) -> str:
    if first is None:
        return f"How fast this {answer.name} trains:"
    speed = speeds.words(first.samples_per_second, first.workload)
    return f"{kind_words(first.hardware, asdict(first))}; it trains {speed}."


def _cell(figure: CellFigure) -> dict[str, Any]:
    return {name: getattr(figure, name) for name in CELL}


def _cell_words(figure: CellFigure) -> str:
    unusual = "" if figure.precision == "float32" else f", {figure.precision}"
    return (
        f"{figure.workload}, {figure.framework} {figure.recipe} on {figure.device}, "
        f"batch {figure.batch_size:,}{unusual}, {figure.data} data, {figure.timing} timing"
    )


def _trends_href(shown: CellFigure, of_cell: HistoryAnswer) -> str | None:
    """The study by version has figures in float32 at the default batch size."""
    usual = workload_named(shown.workload).batch_size == shown.batch_size
    versions = any(point.framework_version for point in of_cell.points)
    if not (usual and versions and shown.precision == "float32"):
        return None
    names = ("workload", "framework")
    chosen = {name: getattr(shown, name) for name in names}
    return address("/trends", {"hardware": shown.hardware_slug, **chosen})


def _history_plot(answer: HistoryAnswer, changes: Sequence[ChangeWords]) -> Plot | None:
    if len(answer.points) < 2:
        return None
    all_disturbed = all(point.disturbed for point in answer.points)
    points = tuple(
        Point(
            number,
            speeds.per_second(point.samples_per_second, answer.workload),
            _point_words(point, answer.workload),
            label="disturbed" if point.disturbed and not all_disturbed else "",
        )
        for number, point in enumerate(answer.points)
    )
    numbers = {point.run_id: number for number, point in enumerate(answer.points)}
    return plot(
        f"{speeds.unit(answer.workload)}s per second, run by run; the axis does not begin at zero",
        [Series(answer.workload, points)],
        x_words=lambda number: f"{answer.points[int(number)].started_at:%Y-%m-%d}",
        y_words=people.rate,
        x_ticks=[0, len(points) - 1],
        marks=[
            Mark(numbers[change.run_id] - 0.5, words.label, words.kind)
            for change, words in zip(answer.changes, changes, strict=True)
        ],
    )


def _point_words(point: HistoryPoint, workload: str) -> str:
    """``12,081/s on 2026-10-01, median of 2, 1 disturbed repeat not counted``."""
    disturbed = sum(repeat.disturbed for repeat in point.repeats)
    counted = len(point.repeats) - (0 if point.disturbed else disturbed)
    speed = speeds.short(point.samples_per_second, workload)
    words = f"{speed} on {point.started_at:%Y-%m-%d}"
    words += f", median of {counted}"
    if point.disturbed:
        return f"{words}, disturbed"
    if disturbed:
        return f"{words}, {disturbed} disturbed repeat{'s' * (disturbed != 1)} not counted"
    return words
