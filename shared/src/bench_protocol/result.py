"""The result: one outcome of one repeat of one cell, with machine, environment and clocks.

This is what is signed, so its form can only grow. Versions of the payload:

1  (2026-11) first version.
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from .machine import Environment, Machine, Setting
from .matrix import Cell
from .units import (
    Bytes,
    Count,
    DurationNs,
    EnergyMj,
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

SCHEMA_VERSION = 1

FailureKind = Literal[
    "out_of_memory",
    "timeout",
    "stalled",
    "diverged",
    "wrong_result",
    "unavailable",
    "crashed",
]
Phase = Literal["start", "import", "data", "build", "conformance", "warm_up", "timing", "evaluate"]
StopReason = Literal["settled", "budget", "epochs"]
EnergySource = Literal["nvml", "rapl", "ioreport", "powermetrics", "none"]
# Each sensor's unit is in its name.
Sensor = Literal[
    "cpu_utilisation_percent",
    "cpu_clock_mhz",
    "cpu_temperature_celsius",
    "load_average",
    "memory_used_bytes",
    "thermal_pressure_level",
    "gpu_utilisation_percent",
    "gpu_clock_mhz",
    "gpu_temperature_celsius",
    "gpu_power_watts",
    "gpu_memory_used_bytes",
    "gpu_throttle_bits",
]
RunId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Seed = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]


class Challenge(Wire):
    """The server's nonce that this run was bound to."""

    id: RunId
    nonce: Sha256
    server_origin: Text


class Agent(Wire):
    """The program that measured. ``source_digest``: SHA-256 over its own files."""

    version: Version
    key_id: Sha256
    source_digest: Sha256 | None = None


class Startup(Wire):
    """What came before the timed part, each phase by itself; none of it is in an epoch time."""

    import_ns: DurationNs
    data_ns: DurationNs
    build_ns: DurationNs
    first_step_ns: DurationNs


class Blocks(Wire):
    """Raw block times: each block is ``steps_per_block`` steps between two synchronisations."""

    steps_per_block: PositiveCount
    durations_ns: tuple[DurationNs, ...] = Field(min_length=1, max_length=20_000)
    stop_reason: StopReason
    warm_up_steps: Count
    warm_up_ns: OffsetNs


class Trace(Wire):
    """Losses of the cell's own step before the timing, dropout off.

    ``optimizer``: plain SGD with momentum, which tests kernels and gradients, or the workload's
    own.
    """

    optimizer: Literal["sgd", "workload"]
    batch_size: PositiveCount
    seed: Seed
    losses: tuple[Finite | None, ...] = Field(min_length=1, max_length=1_000)


class Evaluation(Wire):
    """Loss and accuracy on the test samples after training."""

    epochs: Count
    samples: PositiveCount
    loss: Finite | None
    accuracy: Share


class Gemm(Wire):
    """A square matrix product in the same process, the best of several: what the device can do."""

    size: PositiveCount
    precision: Text
    duration_ns: DurationNs


class Energy(Wire):
    """Energy over a window of the timed part, and where the number comes from."""

    source: EnergySource
    reason: Text | None = None
    energy_mj: EnergyMj | None = None
    window_ns: DurationNs | None = None
    samples: Count | None = None


class Placement(Wire):
    """Where the framework says the work ran."""

    reported: Text
    matches: bool


class Measurement(Wire):
    """All that was measured in one process.

    ``layers``: ``stock``, or ``safe`` where the framework's own layers compute wrongly on this
    device and the bias is added so that the faulty fusion cannot match.
    """

    startup: Startup
    blocks: Blocks
    layers: Literal["stock", "safe"]
    parameter_count: Count
    last_loss: Finite | None
    peak_memory_bytes: Bytes | None = None
    host_peak_memory_bytes: Bytes | None = None
    traces: tuple[Trace, ...] = Field(default=(), max_length=8)
    evaluation: Evaluation | None = None
    gemm: Gemm | None = None
    energy: Energy = Energy(source="none", reason="not measured")
    placement: Placement
    recipe_settings: dict[Slug, Setting] = Field(default={}, max_length=32)


class Measured(Wire):
    """The repeat ran to its end."""

    status: Literal["measured"] = "measured"
    measurement: Measurement


class Failed(Wire):
    """The repeat gave no figure that may be ranked; what it did measure is kept."""

    status: Literal["failed"] = "failed"
    kind: FailureKind
    phase: Phase
    exception_class: Annotated[str, StringConstraints(max_length=200)] | None = None
    exit_code: int | None = None
    measurement: Measurement | None = None


Outcome = Annotated[Measured | Failed, Field(discriminator="status")]


class Clocks(Wire):
    """Wall and monotonic clock of the agent. Monotonic values count from the start of the run."""

    run_started: UtcTime
    started: UtcTime
    finished: UtcTime
    started_ns: OffsetNs
    finished_ns: OffsetNs
    signed: UtcTime
    signed_ns: OffsetNs

    @model_validator(mode="after")
    def _in_order(self) -> "Clocks":
        if not self.started_ns < self.finished_ns <= self.signed_ns:
            raise ValueError("started_ns < finished_ns <= signed_ns must hold")
        return self


class Telemetry(Wire):
    """Sensors sampled from the parent process, about once a second; one column a sensor."""

    at_ns: tuple[OffsetNs, ...] = Field(default=(), max_length=20_000)
    columns: dict[Sensor, tuple[Finite | None, ...]] = Field(default={})

    @model_validator(mode="after")
    def _same_length(self) -> "Telemetry":
        for sensor, column in self.columns.items():
            if len(column) != len(self.at_ns):
                raise ValueError(
                    f"column {sensor} has {len(column)} values, at_ns has {len(self.at_ns)}"
                )
        return self


class Warn(Wire):
    """A doubt about the measurement, kept with it: a code and the figures behind it."""

    code: Slug
    figures: dict[Slug, Finite | Setting] = Field(default={}, max_length=16)


class Result(Wire):
    """One outcome with machine, environment and clocks: the predicate of the signed statement."""

    schema_version: Literal[1] = 1
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
    telemetry: Telemetry = Telemetry()
    warnings: tuple[Warn, ...] = Field(default=(), max_length=64)

    @property
    def measurement(self) -> Measurement | None:
        """What was measured, also where the outcome is a failure; None if nothing was."""
        return self.outcome.measurement
