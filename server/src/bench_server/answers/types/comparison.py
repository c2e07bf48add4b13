"""The answer of a comparison."""

from dataclasses import dataclass
from typing import Literal

from ...ranking.compare import Scope
from ...ranking.figures import Kind as VerdictKind
from ..prices import Price

ThingKind = Literal["hardware", "machine", "result", "setup", "published"]
Across = Literal["batch_size"]
# best: each thing at its best, a row a workload; same_software: rows of equal framework and recipe.
Mode = Literal["best", "same_software"]


@dataclass(frozen=True)
class ComparedThing:
    """One column. ``speed_up`` is the geometric mean over the common rows, null without any;
    ``speed_up_low`` and ``speed_up_high`` bound it with 95 % confidence or more, null where a row
    has too few runs; ``verdict_kind`` is the verdict, corrected for all things, ``verdict`` its
    words. ``relative_energy`` is the energy of a sample over that of the first, the geometric mean
    over the common rows; null unless all of them have energies of one scope on both sides.
    ``scope``: ``machines`` if a row compares one machine with one machine, else ``hardware``."""

    id: str
    kind: ThingKind
    name: str
    hardware_slug: str
    speed_up: float | None
    speed_up_low: float | None
    speed_up_high: float | None
    verdict_kind: VerdictKind | None
    verdict: str | None
    scope: Scope | None
    relative_energy: float | None
    price: Price | None


@dataclass(frozen=True)
class ComparedCell:
    """One thing in one row: its set-up, its speed, and its comparison with the first thing.

    ``speed_up_low`` and ``speed_up_high`` bound the speed-up with 95 % confidence, for this cell
    alone; null with too few runs. The verdict follows from ``adjusted_p_value``, which is corrected
    for all comparisons of the answer. ``n`` and ``n_other`` count the independent values of it and
    of the first, each a ``unit``. ``scope``: ``hardware``, or ``machines`` where each side is one
    machine. ``samples_per_joule`` is samples a second per watt; energies of different
    ``energy_scope`` do not compare. ``published``: copied from elsewhere, not measured here.
    """

    framework: str
    device: str
    recipe: str
    batch_size: int
    data: str
    timing: str
    samples_per_second: float
    samples_per_second_low: float | None
    samples_per_second_high: float | None
    repeats: int
    trust_level: int
    provisional: bool
    published: bool
    joules_per_epoch: float | None
    samples_per_joule: float | None
    energy_scope: str | None
    energy_cost_per_epoch: float | None
    samples_per_second_per_price: float | None
    speed_up: float | None
    speed_up_low: float | None
    speed_up_high: float | None
    p_value: float | None
    adjusted_p_value: float | None
    n: int | None
    n_other: int | None
    unit: str | None
    scope: Scope | None
    verdict_kind: VerdictKind | None
    verdict: str | None


@dataclass(frozen=True)
class ComparedRow:
    """One cell of the matrix; ``cells`` in the order of the things, null where not measured.

    The device is not part of a cell: it follows from the hardware, which is compared.
    ``framework`` and ``recipe`` are null where things may differ in them: in the mode ``best``, and
    where only set-ups are compared; ``batch_size`` in a comparison across batch sizes.
    """

    workload: str
    framework: str | None
    recipe: str | None
    batch_size: int | None
    precision: str
    data: str
    timing: str
    common: bool
    cells: tuple[ComparedCell | None, ...]


@dataclass(frozen=True)
class CompareAnswer:
    """Things as columns, workloads and set-ups as rows. ``mode``: ``best`` has a row a workload,
    each thing in its fastest set-up, as scores have; ``same_software`` has a row for each framework
    and recipe; null where set-ups or results are compared. Generated data never meet real data, nor
    short timings long ones.
    ``across`` names the axis in which compared cells differ, if the query names one.
    ``energy_currency``: of the costs of energy, null for a reader's price.
    ``comparisons``: for how many the verdicts are corrected. ``as_of``: the number of log entries
    that the answer follows from."""

    as_of: int
    things: tuple[ComparedThing, ...]
    common_cells: int
    all_cells: int
    comparisons: int
    across: Across | None
    mode: Mode | None
    energy_currency: str | None
    rows: tuple[ComparedRow, ...]
