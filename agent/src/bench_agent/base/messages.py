"""Messages between the agent and its worker process.

The job goes in as one JSON document on standard input. On a file descriptor of its own the worker
answers with JSON lines: ``WorkerEvent`` while it works, so that the parent can
show progress, see a stall, and know the phase of a crash; last one ``Answer``. Output of libraries
goes to the log and cannot corrupt the answer.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from bench_protocol.base.units import DurationNs, Finite, PositiveCount, Sha256, Slug, Wire
from bench_protocol.catalogue.matrix import Cell, Device, DeviceKind
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.machine import Environment, Setting
from bench_protocol.payload.result import Failed, Outcome, Phase, Seed, Trace, Warn

from .self_test import Figures


class Timing(Wire):
    """When a repeat's timed part ends.

    With ``epochs`` set, after that many whole epochs, or as many more as fill ``least_seconds``,
    cut into at least ``min_blocks`` blocks.
    Otherwise once there are ``min_blocks`` blocks of about ``block_seconds`` whose relative spread
    is at most ``target_spread`` and ``least_seconds`` were timed, or when ``budget_seconds`` are
    spent (but never before two blocks).
    """

    warm_up_seconds: float = 0.5
    block_seconds: float = 0.2
    min_blocks: int = 10
    target_spread: float = 0.03
    budget_seconds: float = 10.0
    epochs: int | None = None
    least_seconds: float = 0.0


class FormChoice(Wire):
    """The form of a cell's step that this machine runs fastest.

    ``tried``: of each form the time of a step, or why it was left out.
    """

    name: Slug
    tried: dict[Slug, Setting]


LOCAL_NONCE = "0" * 64


class Job(Wire):
    """The input of a worker: one repeat of one cell, and how to run it.

    ``seed``: of the session. ``nonce``: of the traces; ``LOCAL_NONCE`` where no result is made.
    ``form``: None for the engine's plain one.
    """

    workload: Workload
    cell: Cell
    seed: Seed
    timing: Timing
    nonce: Sha256 = LOCAL_NONCE
    form: FormChoice | None = None


class PhaseBegan(Wire):
    """The worker entered a phase."""

    event: Literal["phase"] = "phase"
    phase: Phase


class BlockDone(Wire):
    """A timed block of ``steps`` steps ended; ``share_done`` is the worker's estimate for the timed
    part, 0 to 1."""

    event: Literal["block"] = "block"
    duration_ns: DurationNs
    steps: PositiveCount
    share_done: float


class Answer(Wire):
    """The last message: the outcome, and the software it ran on (None if its import failed)."""

    event: Literal["answer"] = "answer"
    outcome: Outcome
    environment: Environment | None
    warnings: tuple[Warn, ...] = ()


class FoundDevice(Wire):
    """A device as a framework reports it.

    ``compute_capability`` such as ``9.0``: NVIDIA only. ``architecture`` such as ``applegpu_g17s``:
    Apple only, from MLX. ``python``: the interpreter of the workers that use it, which the parent
    adds; None for the agent's own.
    """

    kind: DeviceKind
    index: int
    name: str
    compute_capability: str | None = None
    architecture: str | None = None
    python: str | None = None

    @property
    def device(self) -> Device:
        return Device(kind=self.kind, index=self.index)


class Probe(Wire):
    """Answer of ``bench_agent.worker --probe FRAMEWORK``: the framework's devices and software."""

    event: Literal["probe"] = "probe"
    devices: tuple[FoundDevice, ...]
    environment: Environment | None
    problem: str | None = None


class TraceAnswer(Wire):
    """Answer of ``bench_agent.worker --trace``: the cell's traces, or why there are none."""

    event: Literal["traced"] = "traced"
    traces: tuple[Trace, ...]
    environment: Environment | None
    problem: str | None = None


class SelfTestAnswer(Wire):
    """Answer of ``bench_agent.worker --self-test``: the figures, or why there are none."""

    event: Literal["self_tested"] = "self_tested"
    figures: Figures | None
    failed: Failed | None = None


class FormAnswer(Wire):
    """Answer of ``bench_agent.worker --form FORM``: how the job's cell runs in it.

    ``masks_change``: whether each step draws other dropout masks. ``problem``: why there are no
    figures.
    """

    event: Literal["form"] = "form"
    step_ns: Finite | None = None
    trace: Trace | None = None
    masks_change: bool = True
    problem: str | None = None


WorkerEvent = PhaseBegan | BlockDone


LastMessage = Answer | Probe | TraceAnswer | SelfTestAnswer | FormAnswer
Message = Annotated[WorkerEvent | LastMessage, Field(discriminator="event")]
MESSAGE: TypeAdapter[WorkerEvent | LastMessage] = TypeAdapter(Message)
