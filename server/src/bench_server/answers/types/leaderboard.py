"""Workloads, figures and boards."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

from bench_protocol.catalogue import speeds
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.peaks import mfu
from bench_protocol.catalogue.workloads import Size, Workload
from bench_protocol.training.measured_limits import not_measured
from bench_protocol.trust.omissions import Omissions

from ...ranking.figures import Figure, Unit
from ...ranking.owners import OWNER_KINDS, Backing, OwnerCounts, OwnerKind
from ...ranking.score import Score
from ...ranking.spread import Between, unsteady
from .shared_fields import InCell, InSetup, Rated, SpeedUp, rate_fields

# Fields of an answer that a figure has under the same name.
SAME_NAMES = (
    *("hardware", "hardware_slug", "disturbed", "left_out", "repeats", "runs"),
    *("machines", "backing", "held", "trust_level", "published", "newest_at"),
)
Made = TypeVar("Made", bound="FigureAnswer")
UnrankedState = Literal["kept", "hidden", "withdrawn"]


@dataclass(frozen=True)
class WorkloadAnswer:
    """A workload of the catalogue."""

    name: str
    summary: str
    digest: str
    parameter_count: int
    size: Size
    unit: Literal["sample", "token"]
    units_per_sample: int
    training_flops_per_sample: int
    batch_size: int
    batch_sizes: tuple[int, ...]
    epochs: int
    loss: str
    optimizer: dict[str, Any]
    data_set: dict[str, Any]
    layers: list[dict[str, Any]]
    not_measured: tuple[str, ...]


@dataclass(frozen=True)
class FigureAnswer(Rated, InSetup):
    """One hardware in one set-up: the median over owners of their machines' medians, which are
    medians over runs. The median of an even number is the slower of the two in the middle, so
    ``result_id`` is a repeat of exactly this speed; ``accuracy`` and energy are those of it.
    Repeats, runs and machines are those that count."""

    hardware: str
    hardware_slug: str
    machine_id: str | None
    n: int
    n_of: Unit
    epoch_seconds: float
    slowest_machine_samples_per_second: float | None
    fastest_machine_samples_per_second: float | None
    spread: float | None
    spread_between: Between | None
    unsteady: bool
    disturbed: bool
    left_out: int
    joules_per_epoch: float | None
    samples_per_joule: float | None
    tokens_per_joule: float | None
    energy_scope: str | None
    mfu: float | None
    accuracy: float | None
    repeats: int
    runs: int
    machines: int
    owners: int
    confirmed_owners: int
    established_owners: int
    new_owners: int
    owners_that_decide: OwnerKind
    backing: Backing | None
    held: bool
    trust_level: int
    published: bool
    newest_at: datetime
    result_id: str

    @property
    def owner_words(self) -> str:
        """How many owners of each kind have a figure, and which decide."""
        counts = OwnerCounts(self.confirmed_owners, self.established_owners, self.new_owners)
        return counts.words(self.owners_that_count)

    @property
    def owners_that_count(self) -> int:
        """The number of owners that count in the figure."""
        return self.n if self.n_of == "owners" else 1

    @property
    def bar_end(self) -> float:
        """The rate at which a bar with its range ends."""
        return self.samples_per_second_high or self.samples_per_second

    @property
    def machines_disagree(self) -> bool:
        """Whether machines differ by more than 20 % of the figure's time."""
        slow, fast = (
            self.slowest_machine_samples_per_second,
            self.fastest_machine_samples_per_second,
        )
        if slow is None or fast is None:
            return False
        return unsteady(self.samples_per_second / slow - self.samples_per_second / fast)


@dataclass(frozen=True)
class FlatBoardRow(SpeedUp, FigureAnswer):
    """The fields that exports take from a row of a board."""

    workload: str
    rank: int | None
    setups: int
    mixed_timing: bool
    mixed_data: bool
    price: float | None
    price_currency: str | None
    memory_bytes: float | None


@dataclass(frozen=True)
class BoardRow(FlatBoardRow):
    """A figure with its rank on the whole board, whatever hardware is searched for."""

    omissions: Omissions | None
    others: tuple[FigureAnswer, ...] = ()


@dataclass(frozen=True)
class UnrankedRow(InCell):
    """An unranked result. Only a ``kept`` one can be read; of the others this row is left."""

    result_id: str
    state: UnrankedState
    hardware: str
    hardware_slug: str
    workload: str
    reason: str
    received_at: datetime


@dataclass(frozen=True)
class Board:
    """The ranking of one workload. ``row_count``: rows on all pages; ``ranked_count``: ranked rows
    of the whole board, whatever is searched for."""

    workload: WorkloadAnswer
    baseline: str | None
    baseline_slug: str | None
    baseline_setup: str | None
    rows: tuple[BoardRow, ...]
    row_count: int
    ranked_count: int
    unranked: tuple[UnrankedRow, ...]
    energy_scope: str | None
    energy_scopes: tuple[str, ...]
    next_cursor: str | None = None


@dataclass(frozen=True)
class HardwareScore:
    """A hardware's score, and its rank among those with a place on every scored board."""

    hardware: str
    hardware_slug: str
    published: bool
    rank: int | None
    score: Score


@dataclass(frozen=True)
class Baseline:
    """The baseline of a workload's speed-ups; null if it has no figure there."""

    workload: str
    hardware: str | None
    hardware_slug: str | None
    setup: str | None


@dataclass(frozen=True)
class LeaderboardAnswer:
    """Every requested board in one list, in the catalogue's order; ``rank`` is per workload."""

    as_of: int
    baselines: tuple[Baseline, ...]
    rows: tuple[BoardRow, ...]
    energy_scopes: tuple[str, ...]
    next_cursor: str | None
    scores: tuple[HardwareScore, ...] = ()
    unranked: tuple[UnrankedRow, ...] = ()


def flat(
    boards: tuple[Board, ...], scores: tuple[HardwareScore, ...], as_of: int
) -> LeaderboardAnswer:
    return LeaderboardAnswer(
        as_of,
        tuple(
            Baseline(b.workload.name, b.baseline, b.baseline_slug, b.baseline_setup) for b in boards
        ),
        tuple(row for board in boards for row in board.rows),
        tuple(dict.fromkeys(scope for board in boards for scope in board.energy_scopes)),
        boards[0].next_cursor if len(boards) == 1 else None,
        scores,
        tuple(row for board in boards for row in board.unranked),
    )


def workload_answer(workload: Workload) -> WorkloadAnswer:
    derived = workload.model_dump(mode="json", include={"optimizer", "data_set", "layers"})
    derived["not_measured"] = not_measured(workload)
    data = workload.data_set
    derived |= {"unit": data.unit, "units_per_sample": data.units_per_sample}
    names = WorkloadAnswer.__dataclass_fields__.keys() - derived.keys()
    return WorkloadAnswer(**{name: getattr(workload, name) for name in names}, **derived)


def made(kind: type[Made], fields: dict[str, Any]) -> Made:
    """Unlike the ``__init__`` of a frozen dataclass, it calls no function for each field: that
    takes a tenth of the time of a board. Raises TypeError for a missing or unknown field."""
    if fields.keys() != kind.__dataclass_fields__.keys():
        raise TypeError(f"{kind.__name__}: {fields.keys() ^ kind.__dataclass_fields__.keys()}")
    answer = object.__new__(kind)
    answer.__dict__.update(fields)
    return answer


def epoch_samples(workload: Workload, batch_size: int) -> int:
    """A last short batch is dropped."""
    return workload.steps_per_epoch(batch_size) * batch_size


def figure_answer(figure: Figure) -> FigureAnswer:
    return made(FigureAnswer, figure_fields(figure, workload_named(figure.subject.workload)))


def figure_fields(figure: Figure, workload: Workload) -> dict[str, Any]:
    setup, evidence = figure.setup, figure.evidence
    samples = epoch_samples(workload, setup.batch_size)
    joules, (spread, between) = evidence.joules_per_sample, figure.spread
    machines = figure.machines_range
    return {
        **setup._asdict(),
        **{name: getattr(figure, name) for name in SAME_NAMES},
        "machine_id": figure.subject.machine_id or None,
        **rate_fields(figure),
        "n": figure.values.n,
        "n_of": figure.unit,
        "epoch_seconds": figure.ns_per_sample * samples / 1e9,
        "slowest_machine_samples_per_second": 1e9 / machines.slowest_ns if machines else None,
        "fastest_machine_samples_per_second": 1e9 / machines.fastest_ns if machines else None,
        "spread": None if figure.published else spread,
        "spread_between": None if figure.published else between,
        "unsteady": unsteady(spread),
        "joules_per_epoch": None if joules is None else joules * samples,
        "samples_per_joule": 1 / joules if joules else None,
        "tokens_per_joule": speeds.of_tokens(workload.name, 1 / joules) if joules else None,
        "energy_scope": evidence.energy_scope,
        "mfu": mfu(workload, figure.hardware, setup.precision, figure.ns_per_sample),
        "accuracy": evidence.accuracy,
        "owners": figure.owners.total,
        "confirmed_owners": figure.owners.confirmed,
        "established_owners": figure.owners.established,
        "new_owners": figure.owners.new,
        "owners_that_decide": OWNER_KINDS[figure.owners.deciding],
        "result_id": evidence.result_id,
    }
