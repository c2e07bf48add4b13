"""Study: framework against framework, and naive against pipeline against tuned."""

from collections import defaultdict
from dataclasses import dataclass

from sqlmodel import Session

from bench_protocol.catalogue import CATALOGUE
from bench_protocol.workloads import Workload

from ...ranking.figures import Figure
from ...ranking.rows import TABLE
from .common import (
    FigureComparison,
    HardwareChoice,
    SetupFigure,
    hold,
    of_hardware,
    one_data,
    richest,
    setup_figure,
)

RECIPES = ("naive", "pipeline", "tuned")


@dataclass(frozen=True)
class FrameworkRow:
    """One framework in the recipes naive, pipeline and tuned, each compared with its own naive;
    null if not measured. ``best`` is compared with the fastest of the other frameworks."""

    framework: str
    recipes: tuple[SetupFigure | None, SetupFigure | None, SetupFigure | None]
    best: FigureComparison | None


@dataclass(frozen=True)
class FrameworkTable:
    """Frameworks on one workload at one batch size, fastest first."""

    workload: str
    batch_size: int
    precision: str
    data: str
    rows: tuple[FrameworkRow, ...]


@dataclass(frozen=True)
class FrameworksAnswer:
    """Framework against framework on one hardware; null if nothing is ranked."""

    hardware: str | None
    hardware_slug: str | None
    tables: tuple[FrameworkTable, ...]


def frameworks(session: Session, choice: HardwareChoice) -> FrameworksAnswer:
    """The study of one hardware.

    Raises:
        NotFound: the hardware has no figures.
    """
    slug = choice.hardware or richest(session, TABLE.c.framework, TABLE.c.recipe)
    if slug is None:
        return FrameworksAnswer(None, None, ())
    figures_found = of_hardware(session, slug)
    tables = []
    for workload in CATALOGUE:
        figures = one_data(_default_cells(figures_found, workload))
        if len({(f.setup.framework, f.setup.recipe) for f in figures}) > 1:
            tables.append(_framework_table(figures))
    return FrameworksAnswer(figures_found[0].hardware, slug, tuple(tables))


def _default_cells(figures: list[Figure], workload: Workload) -> list[Figure]:
    wanted = (workload.digest, workload.batch_size, "float32")
    return [
        f
        for f in figures
        if (f.subject.workload_digest, f.setup.batch_size, f.setup.precision) == wanted
    ]


def _framework_table(figures: list[Figure]) -> FrameworkTable:
    by_framework: dict[str, dict[str, Figure]] = defaultdict(dict)
    for figure in figures:  # fastest first, so the fastest of several devices is used
        by_framework[figure.setup.framework].setdefault(figure.setup.recipe, figure)
    best = {name: min(by_recipe.values(), key=time_of) for name, by_recipe in by_framework.items()}
    rows = []
    for name in sorted(best, key=lambda name: best[name].ns_per_sample):
        by_recipe = by_framework[name]
        naive = by_recipe.get("naive")
        cells = [
            setup_figure(by_recipe[recipe], naive if recipe != "naive" else None)
            if recipe in by_recipe
            else None
            for recipe in RECIPES
        ]
        others = [figure for other, figure in best.items() if other != name]
        held = hold(best[name], min(others, key=time_of)) if others else None
        rows.append(FrameworkRow(name, (cells[0], cells[1], cells[2]), held))
    first = figures[0]
    setup = first.setup
    return FrameworkTable(
        first.subject.workload, setup.batch_size, setup.precision, setup.data, tuple(rows)
    )


def time_of(figure: Figure) -> float:
    return figure.ns_per_sample
