"""The result: one outcome of one repeat of one cell, with machine, environment and clocks.

The result is signed, so from the first release on its form can only be extended.
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from ..base.units import (
    Bytes,
    Count,
    DurationNs,
    Finite,
    OffsetNs,
    PositiveCount,
    Sha256,
    Share,
    Slug,
    Text,
    UtcTime,
    Version,
    Wire,
)
from ..catalogue.matrix import Cell
from .machine import Environment, Machine, Setting
from .readings import Conditions, Energy, Telemetry
from .window import Window
from .witness import LastBlock, Witness

SCHEMA_VERSION = 1

FailureKind = Literal[
    "out_of_memory",
    "timeout",
    "stalled",
    "diverged",
    "wrong_result",
    "unavailable",
    "crashed",
    "too_busy",
]
Phase = Literal["start", "import", "data", "build", "warm_up", "timing", "evaluate", "reading"]
StopReason = Literal["settled", "budget", "epochs"]
MOST_BLOCKS = 20_000
# POSIX: minus the signal's number; Windows: up to 2**32 - 1.
ExitCode = Annotated[int, Field(ge=-(2**31), le=2**32 - 1)]
ResultId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
RunId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Seed = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]


class Challenge(Wire):
    """The server's nonce that this run was bound to."""

    id: RunId
    nonce: Sha256
    server_origin: Text


class Agent(Wire):
    """The program that measured."""

    version: Version
    key_id: Sha256


class Startup(Wire):
    """Phases before the timed part, each by itself; none counts in an epoch time."""

    import_ns: DurationNs
    data_ns: DurationNs
    build_ns: DurationNs
    first_step_ns: DurationNs

    @property
    def total_ns(self) -> int:
        return self.import_ns + self.data_ns + self.build_ns + self.first_step_ns


class Blocks(Wire):
    """Raw block times: each block is ``steps_per_block`` steps between two synchronisations.

    ``last_block``: the remaining steps of the last epoch; they count in times and rates, not in the
    spread of the blocks.
    """

    steps_per_block: PositiveCount
    durations_ns: tuple[DurationNs, ...] = Field(min_length=1, max_length=MOST_BLOCKS)
    stop_reason: StopReason
    warm_up_steps: Count
    warm_up_ns: OffsetNs
    last_block: LastBlock | None = None

    @property
    def steps(self) -> int:
        rest = self.last_block.steps if self.last_block else 0
        return len(self.durations_ns) * self.steps_per_block + rest

    @property
    def all_durations_ns(self) -> tuple[int, ...]:
        """The time of every block, the last one included."""
        rest = (self.last_block.duration_ns,) if self.last_block else ()
        return (*self.durations_ns, *rest)

    @property
    def total_ns(self) -> int:
        return sum(self.all_durations_ns)


class Evaluation(Wire):
    """Loss and accuracy of the timed session on samples of the test split, after its last block.

    ``epochs``: whole epochs that it was timed for.
    """

    epochs: Count
    samples: PositiveCount
    loss: Finite | None
    accuracy: Share


class Gemm(Wire):
    """The fastest of several square matrix products in the same process, as a measure of the
    device."""

    size: PositiveCount
    precision: Text
    duration_ns: DurationNs


class Placement(Wire):
    """The device of the training, as the framework reports it."""

    reported: Text
    matches: bool


class Measurement(Wire):
    """All measurements of one process.

    ``layers``: ``stock``, or ``safe`` where the framework's own layers compute wrongly on this
    device and the bias is added so that the faulty fusion cannot match. ``data_digest``: see
    :func:`bench_protocol.catalogue.seeded.data_digest`; accuracy bands are keyed by it.
    """

    startup: Startup
    blocks: Blocks
    layers: Literal["stock", "safe"]
    parameter_count: Count
    last_loss: Finite | None
    peak_memory_bytes: Bytes | None = None
    host_peak_memory_bytes: Bytes | None = None
    data_digest: Sha256 | None = None
    evaluation: Evaluation | None = None
    gemm: Gemm | None = None
    energy: Energy = Energy(source="none", reason="not measured")
    placement: Placement
    recipe_settings: dict[Slug, Setting] = Field(default={}, max_length=32)
    witness: Witness | None = None
    window: Window | None = None

    @property
    def accuracy(self) -> float | None:
        """The accuracy after whole epochs; None where none was timed."""
        return self.evaluation.accuracy if self.evaluation and self.evaluation.epochs else None


class Measured(Wire):
    """The repeat ran to its end."""

    status: Literal["measured"] = "measured"
    measurement: Measurement


class Failed(Wire):
    """The repeat has no figure that may be ranked; its measurements are kept."""

    status: Literal["failed"] = "failed"
    kind: FailureKind
    phase: Phase
    exception_class: Text | None = None
    exit_code: ExitCode | None = None
    measurement: Measurement | None = None


Outcome = Annotated[Measured | Failed, Field(discriminator="status")]


class Clocks(Wire):
    """Wall and monotonic clock of the agent. Monotonic values count from the start of the run."""

    run_started: UtcTime
    started: UtcTime
    started_ns: OffsetNs
    finished_ns: OffsetNs
    signed: UtcTime
    signed_ns: OffsetNs

    @model_validator(mode="after")
    def _in_order(self) -> "Clocks":
        if not self.started_ns < self.finished_ns <= self.signed_ns:
            raise ValueError("started_ns < finished_ns <= signed_ns must hold")
        return self


class Warn(Wire):
    """A doubt about the measurement: a code and the figures behind it."""

    code: Slug
    figures: dict[Slug, Finite | Setting] = Field(default={}, max_length=16)


class Asked(Wire):
    """The server's ask that this result answers.

    ``root``: the log's root that it was drawn from. ``reason``: why the server wants the cell
    measured again. ``result``: the result to be reproduced, if it is one.
    """

    root: Sha256
    reason: Slug
    result: ResultId | None = None


class Result(Wire):
    """One outcome with machine, environment and clocks: the predicate of the signed statement.

    ``nonce``: drawn by the agent where there is no challenge
    (:mod:`bench_protocol.catalogue.nonces`).
    """

    # Literal[1] would accept true and 1.0.
    schema_version: Annotated[int, Field(ge=SCHEMA_VERSION, le=SCHEMA_VERSION)]
    run_id: RunId
    repeat: Annotated[int, Field(ge=1, le=10_000)]
    cell: Cell
    seed: Seed
    preset: Slug | None = None
    challenge: Challenge | None = None
    agent: Agent
    machine: Machine
    environment: Environment
    outcome: Outcome
    clocks: Clocks
    conditions: Conditions | None = None
    telemetry: Telemetry = Telemetry()
    warnings: tuple[Warn, ...] = Field(default=(), max_length=64)
    nonce: Sha256 | None = None
    asked: Asked | None = None

    @model_validator(mode="after")
    def _one_nonce(self) -> "Result":
        if (self.nonce is None) == (self.challenge is None):
            raise ValueError("a result has either a challenge or a nonce of its own")
        return self

    @property
    def seeding_nonce(self) -> str:
        """The nonce that its seeds follow from: its challenge's, or the agent's own."""
        if self.challenge is not None:
            return self.challenge.nonce
        if self.nonce is None:
            raise ValueError("a result has either a challenge or a nonce of its own")
        return self.nonce

    @property
    def measurement(self) -> Measurement | None:
        """The measurement, also of a failed repeat; None if there is none."""
        return self.outcome.measurement
