"""A fake engine and a fake clock: training takes exactly the given time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bench_agent.base.messages import Answer, FoundDevice
from bench_agent.engines.seam import Data, Products, Start
from bench_agent.worker import main as worker
from bench_protocol.catalogue.matrix import Cell, DeviceKind, Precision, Recipe
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Failed, Measured, Measurement
from bench_protocol.payload.witness import trained_tensors

from .workloads import TINY, job_of


class FakeClock:
    """A clock in nanoseconds; ``busy``: work that no ``sync`` has waited for yet."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.busy_ns = 0

    def __call__(self) -> int:
        if self.busy_ns:
            raise AssertionError("the clock was read while the device was busy: a sync is missing")
        return self.now_ns

    def timed(self, action: Callable[[], object]) -> int:
        began = self.now_ns
        action()
        return self.now_ns - began


@dataclass
class FakeSession:
    """Each step keeps the device busy for the next of ``step_ns``; ``sync`` lets it pass."""

    clock: FakeClock
    step_ns: Iterator[int] = field(default_factory=lambda: repeat(1_000_000))
    last_loss: float = 0.5
    evaluated: float | None = None
    restarts: list[Start] = field(default_factory=list)
    parameters: int = 0
    place: str = "fake cpu"
    fails_at_step: int | None = None
    error: Exception = field(default_factory=lambda: RuntimeError("planted"))
    layers: Literal["stock", "safe"] = "stock"
    settings: dict[str, str] = field(default_factory=lambda: {"loop": "fake"})
    blocks: list[int] = field(default_factory=list)
    closed: bool = False
    counted_by: Literal["optimizer", "loop"] = "loop"
    uncounted: int = 0
    repeated_epochs: int = 0
    # Where each trained weight is at the end; by default it moved by one. Later steps move it on.
    weights: list[NDArray[np.float32]] = field(default_factory=list)
    readings: int = 0

    def train_block(self, steps: int) -> None:
        if steps < 1:
            raise AssertionError("a block has at least one step")
        self.blocks.append(steps)
        if self.fails_at_step is not None and sum(self.blocks) >= self.fails_at_step:
            raise self.error
        self.clock.busy_ns += sum(next(self.step_ns) for _ in range(steps))

    def sync(self) -> None:
        self.clock.now_ns += self.clock.busy_ns
        self.clock.busy_ns = 0

    def loss(self) -> float:
        return self.last_loss

    def parameter_count(self) -> int:
        return self.parameters

    def peak_memory_bytes(self) -> int | None:
        return 1024

    def evaluate(self, x: NDArray[np.uint8], y: NDArray[np.int32]) -> tuple[float, float]:
        return self.last_loss if self.evaluated is None else self.evaluated, 0.75

    def placement(self) -> str:
        return self.place

    def step_count(self) -> int:
        return sum(self.blocks) - self.uncounted

    def trained_parameters(self) -> Iterator[NDArray[np.float32]]:
        moved = np.float32(self.readings)
        self.readings += 1
        return iter([weight + moved for weight in self.weights])

    def copied_batches(self, count: int) -> list[NDArray[np.float32]]:
        raise AssertionError("only the self-test asks for it")

    def restart(self, start: Start) -> None:
        self.restarts.append(start)

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeProducts:
    """Each product keeps the device busy for ``product_ns``; ``sync`` lets it pass."""

    clock: FakeClock
    product_ns: int

    def request(self, count: int) -> None:
        self.clock.busy_ns += count * self.product_ns

    def sync(self) -> None:
        self.clock.now_ns += self.clock.busy_ns
        self.clock.busy_ns = 0

    def read(self) -> float:
        self.sync()
        return 0.0


@dataclass
class FakeEngine:
    clock: FakeClock
    session: FakeSession
    load_error: Exception | None = None
    open_error: Exception | None = None
    product_error: Exception | None = None
    import_ns: int = 7
    name: str = "fake"
    import_name: str = "fake"
    distributions: tuple[str, ...] = ("pytest", "not-installed-anywhere")
    recipes: tuple[Recipe, ...] = ("naive", "tuned")
    opened_with: Data | None = None

    def why_not(self, device: DeviceKind, recipe: Recipe, precision: Precision) -> str | None:
        return None

    def load(self, workload: Workload, cell: Cell) -> None:
        if self.load_error:
            raise self.load_error
        self.clock.now_ns += self.import_ns

    def devices(self) -> list[FoundDevice]:
        if self.load_error:
            raise self.load_error
        return [FoundDevice(kind="cpu", index=0, name="fake")]

    def libraries(self) -> dict[str, str]:
        return {"blas": "/home/someone/lib/libfake.so.1"}

    def settings(self) -> dict[str, str]:
        return {"fake_threads": "2"}

    def products(self, size: int) -> Products:
        if self.product_error:
            raise self.product_error
        return FakeProducts(self.clock, size**3 // 100)

    def open(self, workload: Workload, cell: Cell, weights: Weights, data: Data) -> FakeSession:
        if self.open_error:
            raise self.open_error
        self.opened_with = data
        self.session.parameters = self.session.parameters or workload.parameter_count
        self.session.weights = self.session.weights or [
            weights[tensor.index][tensor.name] + 1 for tensor in trained_tensors(workload)
        ]
        return self.session


def answer(engine: FakeEngine, **timing: Any) -> tuple[Answer, list[Any]]:
    """A worker's answer to a job of the tiny workload, in this process, and its messages."""
    messages: list[Any] = []
    return worker.work(job_of(TINY, **timing), messages.append, engine.clock), messages


def measured(ended: Answer) -> Measurement:
    assert isinstance(ended.outcome, Measured), ended.outcome
    return ended.outcome.measurement


def failed(ended: Answer) -> Failed:
    assert isinstance(ended.outcome, Failed), ended.outcome
    return ended.outcome
