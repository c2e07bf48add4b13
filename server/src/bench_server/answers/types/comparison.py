"""The answer of a comparison."""

from dataclasses import dataclass
from typing import Literal

from ...ranking.compare import Scope
from ...ranking.figures import Kind as VerdictKind
from ...ranking.owners import Backing
from ..prices import Price
from .shared_fields import InSetup, Rated, SpeedUp

ThingKind = Literal["hardware", "machine", "result", "setup", "published"]
Across = Literal["batch_size"]
# best: each thing at its best, a row a workload; same_software: rows of equal framework and recipe.
Mode = Literal["best", "same_software"]


@dataclass(frozen=True)
class ComparedThing(SpeedUp):
    """One compared thing, with its verdict over the rows that it and the first thing have."""

    id: str
    kind: ThingKind
    name: str
    hardware_slug: str
    verdict_kind: VerdictKind | None
    verdict: str | None
    common_cells: int
    scope: Scope | None
    relative_energy: float | None
    price: Price | None


@dataclass(frozen=True)
class ComparedCell(SpeedUp, Rated, InSetup):
    """One thing in one row: its set-up, its speed, and its comparison with the first thing."""

    repeats: int
    trust_level: int
    backing: Backing | None
    published: bool
    joules_per_epoch: float | None
    samples_per_joule: float | None
    tokens_per_joule: float | None
    energy_scope: str | None
    energy_cost_per_epoch: float | None
    samples_per_second_per_price: float | None
    tokens_per_second_per_price: float | None
    mixed_timing: bool | None
    mixed_data: bool | None
    p_value: float | None
    adjusted_p_value: float | None
    n: int | None
    n_other: int | None
    n_of: str | None
    scope: Scope | None
    verdict_kind: VerdictKind | None
    verdict: str | None


@dataclass(frozen=True)
class ComparedRow:
    """One cell of the matrix. The device is not part of it: it follows from the hardware, which is
    compared."""

    workload: str
    framework: str | None
    recipe: str | None
    batch_size: int | None
    precision: str
    common: bool
    cells: tuple[ComparedCell | None, ...]
    held: tuple[bool, ...]


@dataclass(frozen=True)
class CompareAnswer:
    """Things as columns, workloads and set-ups as rows."""

    as_of: int
    things: tuple[ComparedThing, ...]
    common_cells: int
    all_cells: int
    comparisons: int
    across: Across | None
    mode: Mode | None
    energy_currency: str | None
    rows: tuple[ComparedRow, ...]
