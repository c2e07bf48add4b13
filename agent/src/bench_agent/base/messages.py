"""Messages between the agent and its worker process.

The worker reads one ``Task`` as a JSON document on standard input. On a file descriptor of its own
it answers with JSON lines: ``WorkerEvent`` while it works, so that the parent can show progress,
see a stall, and know the phase of a crash; last the task's answer. Output of libraries goes to the
log and cannot corrupt the answer.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from bench_protocol.base.units import DurationNs, Finite, PositiveCount, Sha256, Slug, Wire
from bench_protocol.catalogue.matrix import Cell, Device, DeviceKind, Precision, Recipe
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.machine import Environment, Setting
from bench_protocol.payload.result import Failed, Outcome, Phase, Seed, Warn
from bench_protocol.payload.witness import Witness

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


class PhaseBegan(Wire):
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
    """A framework's devices and software, or why it sees no device."""

    event: Literal["probe"] = "probe"
    devices: tuple[FoundDevice, ...]
    environment: Environment | None
    problem: str | None = None


ABSENT = Probe(devices=(), environment=None, problem="not installed; bench-agent doctor says how")


class ReadAnswer(Wire):
    """The readings of a cell's session and how its recipe was set up, or why there are none."""

    event: Literal["read"] = "read"
    witness: Witness | None
    recipe_settings: dict[str, str] = Field(default={})
    environment: Environment | None
    problem: str | None = None


class SelfTestAnswer(Wire):
    """The figures of a device, or how the worker failed."""

    event: Literal["self_tested"] = "self_tested"
    figures: Figures | None
    failed: Failed | None = None


class FormAnswer(Wire):
    """How a cell runs in a form, or why there are no figures."""

    event: Literal["form"] = "form"
    step_ns: Finite | None = None
    witness: Witness | None = None
    problem: str | None = None


WorkerEvent = PhaseBegan | BlockDone
LastMessage = Answer | Probe | ReadAnswer | SelfTestAnswer | FormAnswer
Message = Annotated[WorkerEvent | LastMessage, Field(discriminator="event")]
MESSAGE: TypeAdapter[WorkerEvent | LastMessage] = TypeAdapter(Message)

# The nonce of readings of which no result is made.
LOCAL_NONCE = "0" * 64


class Job(Wire):
    """Measure a repeat. ``seed``: of the session. ``form``: None for the engine's plain one.

    Each task's ``lost`` is its answer where the worker gave none.
    """

    task: Literal["measure"] = "measure"
    workload: Workload
    cell: Cell
    seed: Seed
    timing: Timing
    form: FormChoice | None = None

    def lost(self, failed: Failed) -> Answer:
        return Answer(outcome=failed, environment=None)


class ProbeTask(Wire):
    task: Literal["probe"] = "probe"
    framework: str

    def lost(self, failed: Failed) -> Probe:
        problem = f"the probe of {self.framework} gave no answer: {reason(failed)}"
        return Probe(devices=(), environment=None, problem=problem)


class ReadTask(Wire):
    """Make the readings of a cell's session; nothing is timed."""

    task: Literal["read"] = "read"
    workload: Workload
    cell: Cell
    nonce: Sha256

    def lost(self, failed: Failed) -> ReadAnswer:
        return ReadAnswer(witness=None, environment=None, problem=reason(failed))


class FormTask(Wire):
    task: Literal["form"] = "form"
    workload: Workload
    cell: Cell
    form: Slug

    def lost(self, failed: Failed) -> FormAnswer:
        return FormAnswer(problem=reason(failed))


class SelfTestTask(Wire):
    """Test a framework on a device in a precision, in some recipes."""

    task: Literal["self_test"] = "self_test"
    framework: str
    device: Device
    precision: Precision
    recipes: tuple[Recipe, ...]

    def lost(self, failed: Failed) -> SelfTestAnswer:
        return SelfTestAnswer(figures=None, failed=failed)


Task = Annotated[Job | ProbeTask | ReadTask | FormTask | SelfTestTask, Field(discriminator="task")]
TASK: TypeAdapter[Job | ProbeTask | ReadTask | FormTask | SelfTestTask] = TypeAdapter(Task)


def reason(failed: Failed) -> str:
    error = f" ({failed.exception_class})" if failed.exception_class else ""
    return failed.kind.replace("_", " ") + error
