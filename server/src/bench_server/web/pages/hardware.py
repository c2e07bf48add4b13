"""``/hardware/{slug}``, ``/machines/{id}`` and ``/workloads/{name}``: figures of one of each."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlmodel import Session

from bench_protocol import format as people
from bench_protocol.catalogue import CATALOGUE, workload_named
from bench_protocol.machine import Environment, Machine

from ...answers import hardware, leaderboard
from ...answers.filters import BoardFilters, HistoryFilters
from ...answers.history import HistoryAnswer, history
from ...answers.types import Board, WorkloadAnswer, workload_answer
from ...errors import NotFound
from ...ranking.rows import TABLE
from ..description_lists import Fact, environment_facts, machine_facts
from ..plots import Plot, Point, Series, plot
from .common import Choice, address

MOST_MACHINES = 20
CELL = ("workload", "framework", "device", "recipe", "batch_size", "precision", "data", "timing")


@dataclass(frozen=True)
class WorkloadFigures:
    """Figures of one workload, fastest first; ``top``: rate of the fastest repeat."""

    workload: str
    figures: tuple[hardware.CellFigure, ...]
    top: float


@dataclass(frozen=True)
class MachineLink:
    """A machine with this hardware."""

    machine_id: str
    owner: str
    runs: int


@dataclass(frozen=True)
class HardwarePage:
    """``/hardware/{slug}``: how fast does this hardware train, and in which set-up fastest?
    ``sources``: the sources of published figures."""

    title: str
    json_href: str
    badge_href: str
    answer: hardware.HardwareAnswer
    groups: tuple[WorkloadFigures, ...]
    machines: tuple[MachineLink, ...]
    sources: tuple[hardware.PublishedAnswer, ...]


@dataclass(frozen=True)
class MachinePage:
    """``/machines/{id}``: how fast is this machine, and did it change?

    ``history`` and ``plot``: of the chosen cell, null without one; ``trends_href``: figures of the
    cell's hardware by version, null where there are none; ``cells``: addresses of all cells.
    """

    title: str
    json_href: str
    badge_href: str
    answer: hardware.MachineAnswer
    groups: tuple[WorkloadFigures, ...]
    machine: tuple[Fact, ...]
    environment: tuple[Fact, ...]
    history: HistoryAnswer | None
    history_json_href: str | None
    trends_href: str | None
    plot: Plot | None
    cells: tuple[Choice, ...]


@dataclass(frozen=True)
class WorkloadPage:
    """``/workloads/{name}``: what does this workload train, and which hardware is fastest?"""

    title: str
    json_href: str
    workload: WorkloadAnswer
    layers: tuple[Fact, ...]
    board: Board


def hardware_page(session: Session, slug: str, of_operator: str | None = None) -> HardwarePage:
    """Fill the context. Raises NotFound if this hardware has no figures."""
    answer = hardware.hardware(session, slug, of_operator)
    return HardwarePage(
        title=answer.name,
        json_href=f"/api/v1/hardware/{slug}",
        badge_href=f"/hardware/{slug}/badge.svg",
        answer=answer,
        groups=_groups(answer.figures),
        machines=_machines(session, slug),
        sources=_sources(session, slug) if answer.published else (),
    )


def machine_page(session: Session, machine_id: str, filters: HistoryFilters) -> MachinePage:
    """Fill the context. Raises NotFound if the machine has no figures (in the chosen cell)."""
    answer = hardware.machine(session, machine_id)
    wanted = filters.model_dump(exclude_none=True)
    fitting = [f for f in answer.figures if _cell(f).items() >= wanted.items()]
    if not fitting:
        raise NotFound("this machine was not measured in that cell", field="workload")
    shown = max(fitting, key=lambda figure: figure.repeats)
    cell = _cell(shown)
    machine_history = history(session, machine_id, HistoryFilters.model_validate(cell))
    api, here = f"/api/v1/machines/{machine_id}", f"/machines/{machine_id}"
    return MachinePage(
        title=f"{answer.name}, machine {machine_id[:8]}",
        json_href=api,
        badge_href=f"{here}/badge.svg",
        answer=answer,
        groups=_groups(answer.figures),
        machine=machine_facts(Machine.model_validate_json(json.dumps(answer.machine))),
        environment=environment_facts(
            Environment.model_validate_json(json.dumps(answer.environment))
        ),
        history=machine_history,
        history_json_href=address(f"{api}/history", cell),
        trends_href=_trends_href(shown, machine_history),
        plot=_history_plot(machine_history),
        cells=tuple(
            Choice(address(here, _cell(f)) + "#history", _cell_words(f), _cell(f) == cell)
            for f in answer.figures
        ),
    )


def workload_page(session: Session, name: str, of_operator: str | None) -> WorkloadPage:
    """Fill the context. Raises NotFound if the catalogue has no such workload."""
    workload = next((workload for workload in CATALOGUE if workload.name == name), None)
    if workload is None:
        names = ", ".join(workload.name for workload in CATALOGUE)
        raise NotFound(f"no workload {name[:64]!r}", field="name", hint=f"there are {names}")
    answer = workload_answer(workload)
    return WorkloadPage(
        title=name,
        json_href=address("/api/v1/leaderboard", {"workload": name}),
        workload=answer,
        layers=tuple(_layer(layer) for layer in answer.layers),
        board=leaderboard.board(
            session, workload, BoardFilters.model_validate({"limit": 10}), of_operator
        ),
    )


def _groups(figures: Sequence[hardware.CellFigure]) -> tuple[WorkloadFigures, ...]:
    """Group figures by workload; they arrive in the catalogue's order, fastest first."""
    by_workload: dict[str, list[hardware.CellFigure]] = {}
    for figure in figures:
        by_workload.setdefault(figure.workload, []).append(figure)
    return tuple(
        WorkloadFigures(
            name,
            tuple(cell_figures),
            max(figure.fastest_samples_per_second for figure in cell_figures),
        )
        for name, cell_figures in by_workload.items()
    )


def _machines(session: Session, slug: str) -> tuple[MachineLink, ...]:
    """The first machines by id, in the order of an index, so their total number does not matter."""
    query = (
        select(TABLE.c.machine_id, func.min(TABLE.c.owner), func.sum(TABLE.c.runs))
        .where(TABLE.c.level == "machine", TABLE.c.hardware_slug == slug)
        .group_by(TABLE.c.machine_id)
        .order_by(TABLE.c.machine_id)
        .limit(MOST_MACHINES)
    )
    return tuple(MachineLink(*row) for row in session.connection().execute(query))


def _sources(session: Session, slug: str) -> tuple[hardware.PublishedAnswer, ...]:
    figures = hardware.published_figures(session)
    return tuple(figure for figure in figures if figure.hardware_slug == slug)


def _cell(figure: hardware.CellFigure) -> dict[str, Any]:
    return {name: getattr(figure, name) for name in CELL}


def _cell_words(figure: hardware.CellFigure) -> str:
    unusual = "" if figure.precision == "float32" else f", {figure.precision}"
    return (
        f"{figure.workload}, {figure.framework} {figure.recipe} on {figure.device}, "
        f"batch {figure.batch_size:,}{unusual}, {figure.data} data, {figure.timing} timing"
    )


def _trends_href(shown: hardware.CellFigure, of_cell: HistoryAnswer) -> str | None:
    """The study by version has figures in float32 at the default batch size."""
    usual = workload_named(shown.workload).batch_size == shown.batch_size
    versions = any(point.framework_version for point in of_cell.points)
    if not (usual and versions and shown.precision == "float32"):
        return None
    names = ("workload", "framework")
    chosen = {name: getattr(shown, name) for name in names}
    return address("/trends", {"hardware": shown.hardware_slug, **chosen})


def _history_plot(answer: HistoryAnswer) -> Plot:
    points = tuple(
        Point(
            number,
            point.samples_per_second,
            f"{people.rate(point.samples_per_second)}/s on {point.started_at:%Y-%m-%d}, median of "
            f"{len(point.repeats)}",
        )
        for number, point in enumerate(answer.points)
    )
    numbers = {point.run_id: number for number, point in enumerate(answer.points)}
    return plot(
        "samples per second, run by run; the axis does not begin at zero",
        [Series(answer.workload, points)],
        x_words=lambda number: f"{answer.points[int(number)].started_at:%Y-%m-%d}",
        y_words=people.rate,
        x_ticks=[0, len(points) - 1] if len(points) > 1 else [0],
        marks=[
            (
                numbers[change.run_id] - 0.5,
                people.ratio(change.speed_up),
                "faster" if change.speed_up > 1 else "slower",
            )
            for change in answer.changes
        ],
    )


def _layer(layer: dict[str, Any]) -> Fact:
    """A layer's kind and its parameters."""
    rest = ", ".join(
        f"{name} {len(value) if isinstance(value, list) else value}"
        for name, value in layer.items()
        if name != "kind" and value is not None
    )
    return Fact(str(layer["kind"]).replace("_", " "), rest or "no parameters")
