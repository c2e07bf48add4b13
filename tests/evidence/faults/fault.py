"""A planted fault: a small change of the agent, and the cell in which it is run."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from typing import Any, Literal

from bench_agent.base.messages import Timing
from bench_agent.engines import engine_named
from bench_agent.engines.seam import Data
from bench_agent.plan.plan import PlannedCell
from bench_agent.run.idle_gate import IdleGate
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Cell, Device, DeviceKind, Precision, Recipe
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.readings import Conditions
from bench_protocol.payload.result import Result

# A gate that looks at nothing.
OPEN = IdleGate(look=lambda device: Conditions())
# Short: a fault shows in its first steps or not at all. Longer than the slack of the window.
TIMING = Timing(warm_up_seconds=0.3, block_seconds=0.1, budget_seconds=1.2, least_seconds=0.6)
# Why a fault may even keep the level of an honest run: nothing but the sender saw the time.
SENDERS_CLOCK = "block times and window are readings of the sender's clock alone"
KNOWS_WHEN = "it knows when it is read; only pace and test loss bound what it gains"
Group = Literal["A", "B", "C", "D", "E", "F", "G", "H", "K", "L", "M", "N", "P"]
GROUPS: dict[Group, str] = {
    "A": "the step, in every session",
    "B": "the loop",
    "C": "the timed session only",
    "D": "clock, data and what is sent",
    "E": "ResNet50",
    "F": "optimiser state, seed, precision of data",
    "G": "limits of GPUs, from a CPU's values",
    "H": "the optimiser in bfloat16",
    "K": "the timed session, keyed: on a step, a call, being read",
    "L": "the timed session: an epoch's end, work and time outside of the clock",
    "M": "transformers and normalised networks",
    "N": "new: not in the audit",
    "P": "one for each check that no other exercises",
}


@dataclass(frozen=True)
class Setup:
    """The cell of a fault. ``device``: what the result claims; a CPU trains."""

    workload: str
    framework: str
    recipe: Recipe = "tuned"
    batch_size: int | None = None
    precision: Precision = "float32"
    device: DeviceKind = "cpu"

    def planned(self, timing: Timing = TIMING) -> PlannedCell:
        """The one cell of the plan."""
        workload = workload_named(self.workload)
        cell = Cell(
            workload=workload.name,
            workload_digest=workload.digest,
            framework=self.framework,
            device=Device(kind=self.device),
            recipe=self.recipe,
            batch_size=self.batch_size or workload.batch_size,
            precision=self.precision,
            data="generated",
        )
        return PlannedCell(cell=cell, workload=workload, timing=timing, estimate_seconds=60.0)

    def __str__(self) -> str:
        batch = f" batch {self.batch_size}" if self.batch_size else ""
        precision = "" if self.precision == "float32" else f" {self.precision}"
        device = "" if self.device == "cpu" else f", claimed as {self.device}"
        return f"{self.framework} {self.recipe}, {self.workload}{batch}{precision}{device}"


Job = tuple[Workload, Cell, Weights, Data]
ChangeJob = Callable[[Workload, Cell, Weights, Data], Job]
ChangeSession = Callable[[Any], None]


class Planting:
    """The worker process before it runs, and the ways to change it."""

    def __init__(self, framework: str) -> None:
        self.engine: Any = engine_named(framework)

    def loaded(self, action: Callable[[], None]) -> None:
        """Do something once the framework is loaded."""
        load = self.engine.load

        def then(workload: Workload, cell: Cell) -> None:
            load(workload, cell)
            action()

        self.engine.load = then

    def jobs(self, change: ChangeJob) -> None:
        """Change what the session is opened with."""
        opened = self.engine.open
        self.engine.open = lambda *job: opened(*change(*job))

    def sessions(self, change: ChangeSession) -> None:
        """Change the opened session."""
        opened = self.engine.open

        def changed(*job: Any) -> Any:
            session = opened(*job)
            change(session)
            return session

        self.engine.open = changed


Plant = Callable[[Planting], None]


def patched(place: str, made: Callable[[Any], Any]) -> Plant:
    """A part of an engine is replaced once its framework is loaded.

    Args:
        place: its name in ``bench_agent.engines``, such as ``jax.optimizer:update``.
        made: makes the replacement of what is there.
    """
    module, _, names = place.partition(":")

    def plant(here: Planting) -> None:
        def patch() -> None:
            *holders, name = names.split(".")
            holder = reduce(getattr, holders, import_module(f"bench_agent.engines.{module}"))
            setattr(holder, name, made(getattr(holder, name)))

        here.loaded(patch)

    return plant


def nothing(here: Planting) -> None:
    """No fault in the worker."""


@dataclass(frozen=True)
class Fault:
    """A fault. ``group`` and ``name`` are the audit's; ``words`` say what is wrong, ``where`` it
    was planted.

    ``in_timed_loop``: the timed session trains something else than its result says. ``slip``: it
    needs no intent, because it does not know when it is read. ``plant``
    changes the worker process, ``sent`` the result before it is signed. ``unseen``: why no check
    detects it, where none does, and what would.
    """

    name: str
    words: str
    where: str
    setup: Setup
    plant: Plant = nothing
    sent: Callable[[Result], Result] | None = None
    in_timed_loop: bool = False
    slip: bool = True
    unseen: str = ""

    @property
    def group(self) -> Group:
        return next(group for group in GROUPS if self.name.startswith(group))


def changed_workload(workload: Workload, **fields: Any) -> Workload:
    """A workload with other fields. Not a copy: that would keep cached values."""
    return Workload(
        **{**{name: getattr(workload, name) for name in Workload.model_fields}, **fields}
    )
