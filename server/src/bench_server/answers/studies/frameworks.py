"""Study: framework against framework, and naive against pipeline against tuned."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from sqlmodel import Session

from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.matrix import RECIPES

from ...ranking.best import first_of
from ...ranking.compare import Comparison, Comparisons, Pair
from ...ranking.figures import Figure
from ...ranking.rows import TABLE
from ..verdicts import verdicts
from .common import HardwareChoice, SetupFigure, StudyAnswer, of_cells, of_choice, setup_figure

ByFramework = dict[str, list[Figure]]


@dataclass(frozen=True)
class FrameworkRow:
    """One framework in the recipes naive, pipeline and tuned, each compared with its own naive;
    null if not measured. ``best``: its fastest set-up compared with the fastest of all; null for
    that one. ``setups``: of how many it is the best."""

    framework: str
    recipes: tuple[SetupFigure | None, SetupFigure | None, SetupFigure | None]
    best: Comparison | None
    setups: int


@dataclass(frozen=True)
class FrameworkTable:
    """Frameworks on one workload at one batch size, fastest first."""

    workload: str
    batch_size: int
    precision: str
    rows: tuple[FrameworkRow, ...]


@dataclass(frozen=True)
class FrameworksAnswer(StudyAnswer):
    """Framework against framework on one hardware."""

    tables: tuple[FrameworkTable, ...]


def frameworks(session: Session, choice: HardwareChoice) -> FrameworksAnswer:
    """Raises InvalidQuery if the hardware has no figures."""
    of_hardware = of_choice(session, choice, TABLE.c.framework, TABLE.c.recipe)
    if not of_hardware:
        return FrameworksAnswer(None, None, 0, ())
    tables = [
        _by_framework(figures)
        for figures in (of_cells(of_hardware, one, one.batch_size) for one in CATALOGUE)
        if len({(f.setup.framework, f.setup.recipe) for f in figures}) > 1
    ]
    found = verdicts(session, [pair for table in tables for pair in _pairs(table)])
    return FrameworksAnswer(
        of_hardware[0].hardware,
        of_hardware[0].hardware_slug,
        found.count,
        tuple(_framework_table(table, found) for table in tables),
    )


def _by_framework(figures: list[Figure]) -> ByFramework:
    by_framework: ByFramework = defaultdict(list)
    for figure in figures:
        by_framework[figure.setup.framework].append(figure)
    return by_framework


def _pairs(table: ByFramework) -> Iterator[Pair]:
    """The compared figures: each recipe with naive, each framework's best with the best."""
    fastest = _fastest(table)
    for figures in table.values():
        recipes = _by_recipe(figures)
        naive = recipes.pop("naive", None)
        if naive is not None:
            yield from ((figure, naive) for figure in recipes.values())
        if figures[0].id != fastest.id:
            yield first_of(figures), fastest


def _by_recipe(figures: list[Figure]) -> dict[str, Figure]:
    return {figure.setup.recipe: figure for figure in reversed(figures)}


def _fastest(table: ByFramework) -> Figure:
    return first_of(next(iter(table.values())))


def _framework_table(table: ByFramework, found: Comparisons) -> FrameworkTable:
    first = _fastest(table)
    setup = first.setup
    return FrameworkTable(
        first.subject.workload,
        setup.batch_size,
        setup.precision,
        tuple(_row(table, name, found) for name in table),
    )


def _row(table: ByFramework, name: str, found: Comparisons) -> FrameworkRow:
    figures = table[name]
    by_recipe = _by_recipe(figures)
    naive = by_recipe.get("naive")
    cells = [
        setup_figure(figure, found.of.get((figure, naive)) if naive else None) if figure else None
        for figure in map(by_recipe.get, RECIPES)
    ]
    return FrameworkRow(
        framework=name,
        recipes=(cells[0], cells[1], cells[2]),
        best=found.of.get((first_of(figures), _fastest(table))),
        setups=len(figures),
    )
