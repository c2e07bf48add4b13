"""Workloads, figures and boards."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

from bench_protocol.catalogue.peaks import mfu
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.statistics.comparison import figure_interval

from ...ranking.figures import Figure, Unit
from ...ranking.owners import OWNER_KINDS, OwnerCounts, OwnerKind, Tier
from ...ranking.score import Score
from ...ranking.spread import Between, unsteady

Made = TypeVar("Made", bound="FigureAnswer")
UnrankedState = Literal["kept", "hidden", "withdrawn"]


@dataclass(frozen=True)
class WorkloadAnswer:
    """A workload of the catalogue. ``batch_size`` is the default that the board ranks by."""

    name: str
    summary: str
    digest: str
    parameter_count: int
    training_flops_per_sample: int
    batch_size: int
    batch_sizes: tuple[int, ...]
    epochs: int
    loss: str
    optimizer: dict[str, Any]
    data_set: dict[str, Any]
    layers: list[dict[str, Any]]


@dataclass(frozen=True)
class FigureAnswer:
    """One hardware in one set-up: the median over owners of their machines' medians, which are
    medians over runs. It is over the owners of the kinds that decide (``owners_that_decide``).
    The median of an even number is the slower of the two in the middle, so ``result_id`` is a
    repeat of exactly this speed; ``accuracy`` and energy are those of it.

    ``samples_per_second_low`` and ``..._high`` bound the rate with 95 % confidence, from ``n``
    independent values, each a ``unit``; null with fewer than three. Where the unit is runs, all are
    of one machine, and the interval says nothing of other machines of this hardware.

    ``fastest`` and ``slowest`` span the repeats; ``epoch_seconds`` are the full batches of an
    epoch; ``published`` if it was copied from elsewhere (trust level 0) and never measured here.
    Energies of different ``energy_scope`` do not compare. ``mfu`` is null where the vendor states
    no peak.

    ``spread`` is the widest difference behind the figure, relative to its time and not an interval:
    between the ``blocks`` of the repeat in the middle (interquartile range), the ``repeats`` of its
    run, the ``runs`` of its machine, or ``machines``; ``spread_between`` names which. ``unsteady``
    if it is above 20 %. ``slowest_machine_samples_per_second`` and ``fastest_machine_...`` are the
    range of the machines, null for one machine. Eight values or more have the inner half as range.

    ``left_out`` counts results that do not count, because their own agent says that other programs
    or heat slowed them and there are undisturbed ones; ``disturbed`` if what counts was disturbed.

    ``timing``: ``long`` where each repeat was timed for 10 s or more on a CPU, 30 s on a GPU; else
    ``short``. A figure is of one of the two; a published one is long, because its source timed
    whole runs.

    ``owners`` have a figure: ``confirmed_owners``, ``established_owners`` and ``new_owners``.
    ``owners_that_decide``: ``confirmed`` where two or more are confirmed, else ``established``
    where any is confirmed or established (both decide), else ``new`` (all decide). The others are
    counted and not used. ``tier``: ``confirmed`` with two or more confirmed owners, ``several``
    with three or more confirmed or established ones that count, ``provisional`` with fewer, ``new``
    with new owners alone; null for a machine, a result and a published figure. Repeats, runs and
    machines are those that count. ``trust_level``: more than half of the owners that count have it
    or a higher one; so have more than half of an owner's machines, of a machine's runs and of a
    run's results.
    """

    hardware: str
    hardware_slug: str
    machine_id: str | None
    framework: str
    device: str
    recipe: str
    batch_size: int
    precision: str
    data: str
    timing: str
    samples_per_second: float
    samples_per_second_low: float | None
    samples_per_second_high: float | None
    n: int
    unit: Unit
    slowest_samples_per_second: float
    fastest_samples_per_second: float
    epoch_seconds: float
    slowest_machine_samples_per_second: float | None
    fastest_machine_samples_per_second: float | None
    spread: float
    spread_between: Between
    unsteady: bool
    disturbed: bool
    left_out: int
    joules_per_epoch: float | None
    samples_per_joule: float | None
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
    tier: Tier | None
    trust_level: int
    published: bool
    newest_at: datetime
    result_id: str

    @property
    def owner_words(self) -> str:
        """How many owners of each kind have a figure, and which decide."""
        return OwnerCounts(self.confirmed_owners, self.established_owners, self.new_owners).words

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
class BoardRow(FigureAnswer):
    """A row with its rank on the whole board, whatever hardware is searched for; a published figure
    has none, nor have machines and results that were searched for. ``speed_up`` is against the
    board's baseline on the same kind of data and timing, null where that has no figure, with its
    95 % interval where there are enough runs on both sides. ``setups``: among how many set-ups of
    the same tier, data and timing the row's is the first; the fastest of several is too fast by
    chance. ``others``: further set-ups of the hardware, faster ones of a lower tier included."""

    workload: str
    rank: int | None
    setups: int
    speed_up: float | None
    speed_up_low: float | None
    speed_up_high: float | None
    others: tuple[FigureAnswer, ...]


@dataclass(frozen=True)
class UnrankedRow:
    """An unranked result and the reason. Only a ``kept`` one can be read. Its sender can hide it
    (``hidden``) or withdraw it (``withdrawn``); after that only this row is left."""

    result_id: str
    state: UnrankedState
    hardware: str
    hardware_slug: str
    workload: str
    framework: str
    device: str
    recipe: str
    batch_size: int
    precision: str
    data: str
    reason: str
    received_at: datetime


@dataclass(frozen=True)
class Board:
    """The ranking of one workload. ``baseline_slug`` is null where the baseline has no figure;
    ``baseline_setup`` is the set-up in which the baseline was measured. By energy the rows are of
    one ``energy_scope``, of those in ``energy_scopes``, the commonest first. ``row_count``: rows on
    all pages; ``ranked_count``: ranked rows of the whole board, whatever is searched for; both null
    by result, where counting would read all results."""

    workload: WorkloadAnswer
    baseline: str | None
    baseline_slug: str | None
    baseline_setup: str | None
    rows: tuple[BoardRow, ...]
    row_count: int | None
    ranked_count: int | None
    unranked: tuple[UnrankedRow, ...]
    energy_scope: str | None
    energy_scopes: tuple[str, ...]
    next_cursor: str | None = None


@dataclass(frozen=True)
class HardwareScore:
    """A hardware's score, and its rank among those with a place on every board of the baseline.
    The rank is null where a place is missing, provisional or published."""

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
    """Every requested board in one list, in the catalogue's order; ``rank`` is per workload.
    ``next_cursor`` leads on where one workload was asked for and has more rows. Sorted by energy, a
    board's rows are of one ``energy_scope``; ``energy_scopes`` can be asked for. ``scores``: of
    the hardware on these boards, the best first.
    ``as_of``: the number of log entries that the answer follows from."""

    as_of: int
    baselines: tuple[Baseline, ...]
    scores: tuple[HardwareScore, ...]
    rows: tuple[BoardRow, ...]
    unranked: tuple[UnrankedRow, ...]
    energy_scopes: tuple[str, ...]
    next_cursor: str | None


def flat(
    boards: tuple[Board, ...], scores: tuple[HardwareScore, ...], as_of: int
) -> LeaderboardAnswer:
    """Boards as one list."""
    return LeaderboardAnswer(
        as_of,
        tuple(
            Baseline(b.workload.name, b.baseline, b.baseline_slug, b.baseline_setup) for b in boards
        ),
        scores,
        tuple(row for board in boards for row in board.rows),
        tuple(row for board in boards for row in board.unranked),
        tuple(dict.fromkeys(scope for board in boards for scope in board.energy_scopes)),
        boards[0].next_cursor if len(boards) == 1 else None,
    )


def workload_answer(workload: Workload) -> WorkloadAnswer:
    definition = workload.model_dump(mode="json")
    return WorkloadAnswer(
        name=workload.name,
        summary=workload.summary,
        digest=workload.digest,
        parameter_count=workload.parameter_count,
        training_flops_per_sample=workload.training_flops_per_sample,
        batch_size=workload.batch_size,
        batch_sizes=workload.batch_sizes,
        epochs=workload.epochs,
        loss=workload.loss,
        optimizer=definition["optimizer"],
        data_set=definition["data_set"],
        layers=definition["layers"],
    )


def made(kind: type[Made], fields: dict[str, Any]) -> Made:
    """An answer from all of its fields. The ``__init__`` of a frozen dataclass calls a function for
    each field: a tenth of the time of a board.

    Raises:
        TypeError: a field is missing or unknown.
    """
    if fields.keys() != kind.__dataclass_fields__.keys():
        raise TypeError(f"{kind.__name__}: {fields.keys() ^ kind.__dataclass_fields__.keys()}")
    answer = object.__new__(kind)
    answer.__dict__.update(fields)
    return answer


def rate_fields(figure: Figure) -> dict[str, Any]:
    """The rate of a figure and its 95 % interval: fields of every answer that has one."""
    bounds = figure_interval(figure.ns_per_sample, figure.values)
    return {
        "samples_per_second": 1e9 / figure.ns_per_sample,
        "samples_per_second_low": 1e9 / bounds[1] if bounds else None,
        "samples_per_second_high": 1e9 / bounds[0] if bounds else None,
    }


def epoch_samples(workload: Workload, batch_size: int) -> int:
    """The samples of an epoch: as many full batches as the training samples fill. The last short
    one is dropped."""
    return workload.steps_per_epoch(batch_size) * batch_size


def figure_fields(figure: Figure, workload: Workload) -> dict[str, Any]:
    """The arguments of :class:`FigureAnswer`."""
    setup, evidence = figure.setup, figure.evidence
    samples = epoch_samples(workload, setup.batch_size)
    joules, (spread, between) = evidence.joules_per_sample, figure.spread
    machines = figure.machines_range
    return {
        **setup._asdict(),
        "hardware": figure.hardware,
        "hardware_slug": figure.hardware_slug,
        "machine_id": figure.subject.machine_id or None,
        **rate_fields(figure),
        "n": figure.values.n,
        "unit": figure.unit,
        "slowest_samples_per_second": 1e9 / figure.slowest_ns,
        "fastest_samples_per_second": 1e9 / figure.fastest_ns,
        "epoch_seconds": figure.ns_per_sample * samples / 1e9,
        "slowest_machine_samples_per_second": 1e9 / machines.slowest_ns if machines else None,
        "fastest_machine_samples_per_second": 1e9 / machines.fastest_ns if machines else None,
        "spread": spread,
        "spread_between": between,
        "unsteady": unsteady(spread),
        "disturbed": figure.disturbed,
        "left_out": figure.left_out,
        "joules_per_epoch": None if joules is None else joules * samples,
        "samples_per_joule": 1 / joules if joules else None,
        "energy_scope": evidence.energy_scope,
        "mfu": mfu(workload, figure.hardware, setup.precision, figure.ns_per_sample),
        "accuracy": evidence.accuracy,
        "repeats": figure.repeats,
        "runs": figure.runs,
        "machines": figure.machines,
        "owners": figure.owners.total,
        "confirmed_owners": figure.owners.confirmed,
        "established_owners": figure.owners.established,
        "new_owners": figure.owners.new,
        "owners_that_decide": OWNER_KINDS[figure.owners.deciding],
        "tier": figure.tier,
        "trust_level": figure.trust_level,
        "published": figure.published,
        "newest_at": figure.newest_at,
        "result_id": evidence.result_id,
    }
