"""Study: how speed grows with the batch size."""

from collections import defaultdict
from dataclasses import dataclass

from sqlmodel import Session

from bench_protocol.catalogue import CATALOGUE

from ...ranking.figures import Figure
from ...ranking.rows import TABLE
from .common import (
    HardwareChoice,
    SetupFigure,
    data_of,
    of_hardware,
    one_data,
    richest,
    setup_figure,
)


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
    data: str
    lines: tuple[BatchLine, ...]


@dataclass(frozen=True)
class BatchAnswer:
    """Speed by batch size on one hardware; null if no set-up has two sizes."""

    hardware: str | None
    hardware_slug: str | None
    studies: tuple[BatchStudy, ...]


def batch_sizes(session: Session, choice: HardwareChoice) -> BatchAnswer:
    """The study of one hardware.

    Raises:
        NotFound: the hardware has no figures.
    """
    slug = choice.hardware or richest(session, TABLE.c.workload, TABLE.c.batch_size)
    if slug is None:
        return BatchAnswer(None, None, ())
    figures_found = of_hardware(session, slug)
    studies = []
    for workload in CATALOGUE:
        plain = [
            f
            for f in figures_found
            if f.subject.workload_digest == workload.digest and f.setup.precision == "float32"
        ]
        lines = _batch_lines(one_data(plain))
        if lines:
            setup = plain[0].setup
            studies.append(BatchStudy(workload.name, setup.precision, data_of(plain), lines))
    return BatchAnswer(figures_found[0].hardware, slug, tuple(studies))


def _batch_lines(figures: list[Figure]) -> tuple[BatchLine, ...]:
    lines: dict[tuple[str, str, str], list[Figure]] = defaultdict(list)
    for figure in figures:
        lines[figure.setup.framework, figure.setup.device, figure.setup.recipe].append(figure)
    batch_lines = []
    for (framework, device, recipe), of_line in sorted(lines.items()):
        if len(of_line) > 1:
            ordered = sorted(of_line, key=lambda figure: figure.setup.batch_size)
            cells = (
                setup_figure(figure, ordered[0] if n else None) for n, figure in enumerate(ordered)
            )
            batch_lines.append(BatchLine(framework, device, recipe, tuple(cells)))
    return tuple(batch_lines)
