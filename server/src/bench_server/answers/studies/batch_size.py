"""Study: how speed grows with the batch size."""

from collections import defaultdict
from dataclasses import dataclass

from sqlmodel import Session

from bench_protocol.catalogue.catalogue import CATALOGUE

from ...ranking.compare import Comparisons
from ...ranking.figures import Figure
from ...ranking.rows import TABLE
from ..verdicts import verdicts
from .common import HardwareChoice, SetupFigure, StudyAnswer, of_cells, of_choice, setup_figure


@dataclass(frozen=True)
class BatchLine:
    """A set-up over its batch sizes, ascending; each is compared with the smallest."""

    framework: str
    device: str
    recipe: str
    figures: tuple[SetupFigure, ...]


@dataclass(frozen=True)
class BatchStudy:
    """Batch sizes of one workload."""

    workload: str
    precision: str
    lines: tuple[BatchLine, ...]


@dataclass(frozen=True)
class BatchAnswer(StudyAnswer):
    """Speed by batch size on one hardware."""

    studies: tuple[BatchStudy, ...]


def batch_sizes(session: Session, choice: HardwareChoice) -> BatchAnswer:
    """Raises InvalidQuery if the hardware has no figures."""
    of_hardware = of_choice(session, choice, TABLE.c.workload, TABLE.c.batch_size)
    if not of_hardware:
        return BatchAnswer(None, None, 0, ())
    lines_of = {workload.name: _lines(of_cells(of_hardware, workload)) for workload in CATALOGUE}
    pairs = [
        (figure, line[0]) for lines in lines_of.values() for line in lines for figure in line[1:]
    ]
    found = verdicts(session, pairs)
    studies = tuple(_study(name, lines, found) for name, lines in lines_of.items() if lines)
    first = of_hardware[0]
    return BatchAnswer(first.hardware, first.hardware_slug, found.count, studies)


def _lines(figures: list[Figure]) -> list[list[Figure]]:
    """By set-up with several batch sizes, of each the fastest figure, the smallest batch first."""
    lines: dict[tuple[str, str, str], dict[int, Figure]] = defaultdict(dict)
    for figure in figures:
        setup = figure.setup
        line = lines[setup.framework, setup.device, setup.recipe]
        line.setdefault(setup.batch_size, figure)
    ordered = [[line[size] for size in sorted(line)] for _, line in sorted(lines.items())]
    return [line for line in ordered if len(line) > 1]


def _study(name: str, lines: list[list[Figure]], found: Comparisons) -> BatchStudy:
    setup = lines[0][0].setup
    answers = tuple(_batch_line(line, found) for line in lines)
    return BatchStudy(name, setup.precision, answers)


def _batch_line(line: list[Figure], found: Comparisons) -> BatchLine:
    first, *larger = line
    cells = [(first, None), *((figure, found.of[figure, first]) for figure in larger)]
    setup = first.setup
    figures = tuple(setup_figure(figure, compared) for figure, compared in cells)
    return BatchLine(setup.framework, setup.device, setup.recipe, figures)
