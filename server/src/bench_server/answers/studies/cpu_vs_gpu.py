"""Study: CPU against GPU, and the work per step from which the GPU is faster."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import case, func, select
from sqlmodel import Session

from bench_protocol.catalogue.catalogue import CATALOGUE

from ...errors import InvalidQuery
from ...ranking.best import best_first, first_of
from ...ranking.compare import Comparison, Comparisons
from ...ranking.figures import Figure
from ...ranking.rows import RESULTS, TABLE
from .. import stored_figures
from ..parameters import Empty, HardwareSlug
from ..verdicts import verdicts
from .common import SetupFigure, of_hardware, setup_figure

WORKLOADS = {workload.digest: workload for workload in CATALOGUE}
# Digest of the workload, batch size.
Cell = tuple[str, int]


class PairChoice(BaseModel):
    """Parameters of CPU against GPU; empty: a machine with many figures on both."""

    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True)

    cpu: Annotated[HardwareSlug | None, Empty] = Field(None, examples=["intel-core-i7-8700"])
    """slug of a processor"""
    gpu: Annotated[HardwareSlug | None, Empty] = Field(None, examples=["nvidia-h200"])
    """slug of a GPU"""
    hardware: Annotated[HardwareSlug | None, Empty] = Field(None, examples=["nvidia-h200"])
    """slug of one of the two, with a partner of its own machine if there is one; without effect
    beside cpu or gpu"""


@dataclass(frozen=True)
class PairRow:
    """One cell on both devices, each in its fastest framework and recipe.
    ``compared``: the GPU compared with the CPU. ``flops_per_step``: training FLOPs of a batch.
    ``cpu_setups`` and ``gpu_setups``: of how many set-ups the figure is the fastest."""

    workload: str
    parameter_count: int
    batch_size: int
    flops_per_step: int
    cpu: SetupFigure
    gpu: SetupFigure
    cpu_setups: int
    gpu_setups: int
    compared: Comparison


@dataclass(frozen=True)
class PairAnswer:
    """CPU against GPU, by work in a step; ``pays_from_flops``: from this work on the GPU is faster
    in every cell; null if it never is, or without figures. ``comparisons``: for how many the
    verdicts are corrected."""

    cpu: str | None
    cpu_slug: str | None
    gpu: str | None
    gpu_slug: str | None
    pays_from_flops: int | None
    comparisons: int
    rows: tuple[PairRow, ...]

    @property
    def hardware_slug(self) -> str | None:
        """The one that other studies are shown of."""
        return self.gpu_slug


def cpu_against_gpu(session: Session, choice: PairChoice) -> PairAnswer:
    """Raises InvalidQuery if one has no figures, or is no device of its kind."""
    cpu, gpu = choice.cpu, choice.gpu
    if choice.hardware and not (cpu or gpu):
        one = of_hardware(session, choice.hardware)[0]
        cpu, gpu = (choice.hardware, None) if one.setup.device == "cpu" else (None, choice.hardware)
    if not (cpu and gpu):
        pair = _machine_with_both(session, cpu or gpu) or _machine_with_both(session)
        if pair is None:
            return PairAnswer(None, None, None, None, None, 0, ())
        cpu, gpu = cpu or pair[0], gpu or pair[1]
    of_cpu, of_gpu = of_hardware(session, cpu, "cpu"), of_hardware(session, gpu, "gpu")
    for field, figures in (("cpu", of_cpu), ("gpu", of_gpu)):
        if (figures[0].setup.device == "cpu") != (field == "cpu"):
            raise InvalidQuery(
                f"{field}: {figures[0].hardware} is no {field.upper()}",
                field=field,
                hint="GET /api/v1/hardware lists hardware; /cpu-vs-gpu offers those that fit",
            )
    on_cpu, on_gpu = _by_cell(of_cpu), _by_cell(of_gpu)
    cells = sorted(on_cpu.keys() & on_gpu.keys(), key=_work)
    found = verdicts(session, [(first_of(on_gpu[cell]), first_of(on_cpu[cell])) for cell in cells])
    rows = tuple(_row(cell, on_cpu[cell], on_gpu[cell], found) for cell in cells)
    return PairAnswer(
        of_cpu[0].hardware, cpu, of_gpu[0].hardware, gpu, _pays_from(rows), found.count, rows
    )


def _machine_with_both(session: Session, of: str | None = None) -> tuple[str, str] | None:
    """Processor and GPU of the machine with most figures on both, one of them ``of``. For each GPU
    only the machine that represents its figures is considered."""
    stands_for = (
        select(func.min(TABLE.c.result_id))
        .where(TABLE.c.level == "hardware", TABLE.c.device != "cpu")
        .group_by(TABLE.c.hardware_slug)
    )
    candidates = select(RESULTS.c.machine_id).where(RESULTS.c.submission_id.in_(stands_for))
    on_cpu = case((TABLE.c.device == "cpu", 1), else_=0)
    both = func.sum(on_cpu) * (func.count() - func.sum(on_cpu))
    query = (
        select(TABLE.c.machine_id)
        .where(TABLE.c.level == "machine", TABLE.c.machine_id.in_(candidates))
        .group_by(TABLE.c.machine_id)
        .having(both > 0)
        .order_by(both.desc(), TABLE.c.machine_id)
        .limit(1)
    )
    if of is not None:
        having = select(TABLE.c.machine_id).where(
            TABLE.c.level == "machine", TABLE.c.hardware_slug == of
        )
        query = query.where(TABLE.c.machine_id.in_(having))
    machine_id = session.connection().scalar(query)
    if machine_id is None:
        return None
    slugs = {
        f.setup.device: f.hardware_slug for f in stored_figures.machine_figures(session, machine_id)
    }
    cpu = slugs.pop("cpu")
    return cpu, next(iter(slugs.values()))


def _by_cell(figures: list[Figure]) -> dict[Cell, list[Figure]]:
    cells: dict[Cell, list[Figure]] = defaultdict(list)
    for figure in best_first(figures):
        digest, setup = figure.subject.workload_digest, figure.setup
        if setup.precision == "float32" and digest in WORKLOADS:
            cells[digest, setup.batch_size].append(figure)
    return cells


def _work(cell: Cell) -> tuple[int, str]:
    digest, batch_size = cell
    workload = WORKLOADS[digest]
    return workload.training_flops_per_sample * batch_size, workload.name


def _row(cell: Cell, of_cpu: list[Figure], of_gpu: list[Figure], found: Comparisons) -> PairRow:
    digest, batch_size = cell
    workload, cpu, gpu = WORKLOADS[digest], first_of(of_cpu), first_of(of_gpu)
    return PairRow(
        workload=workload.name,
        parameter_count=workload.parameter_count,
        batch_size=batch_size,
        flops_per_step=workload.training_flops_per_sample * batch_size,
        cpu=setup_figure(cpu, None),
        gpu=setup_figure(gpu, None),
        cpu_setups=len(of_cpu),
        gpu_setups=len(of_gpu),
        compared=found.of[gpu, cpu],
    )


def _pays_from(rows: Sequence[PairRow]) -> int | None:
    """The least work from which no cell is slower on the GPU; rows are sorted by work."""
    least = None
    for row in reversed(rows):
        if row.compared.speed_up < 1:
            break
        least = row.flops_per_step
    return least
