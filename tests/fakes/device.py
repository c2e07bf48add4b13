"""A simulated device at the engine seam: it computes for exactly as long as its work takes, and its
engine may not wait for it, round what it multiplies, or lose what it copies."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from tests.fakes.engine import FakeClock, FakeEngine, FakeSession

from bench_agent.engines.common import as_inputs
from bench_agent.engines.seam import Data
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.recompute.layers import forward

Fault = Literal[
    "none",
    "noise",
    "does not wait",
    "waits for half",
    "waits only for a full queue",
    "faster than its bound",
    "float32 in tf32",
    "corrupt copy",
    "raises",
]
FAULTS: tuple[Fault, ...] = Fault.__args__
FLOPS = {"faster than its bound": 1e18}
QUEUE_NS = 15_000_000
FREE_NS = 12_000_000
CALL_NS, READ_NS = 5_000, 20_000
BATCH = 64


@dataclass
class Device:
    fault: Fault
    seed: int = 0
    now_ns: int = 0
    done_ns: int = 0

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def request(self, work_ns: float) -> None:
        if self.fault == "noise":
            work_ns *= 1 + max(0.0, self._random.uniform(-1, 1))
            if self.done_ns - self.now_ns > FREE_NS:  # another program gets the cores
                work_ns *= 10
        self.now_ns += CALL_NS
        self.done_ns = max(self.now_ns, self.done_ns) + round(work_ns)
        if self.fault == "waits only for a full queue":
            self._until(self.done_ns - QUEUE_NS)

    def sync(self) -> None:
        left = self.done_ns - self.now_ns
        if self.fault == "waits for half":
            self._until(self.now_ns + left // 2)
        elif self.fault not in ("does not wait", "waits only for a full queue"):
            self._until(self.done_ns)
        if self.fault == "noise" and self._random.random() < 0.2:
            self.now_ns += 20_000_000  # another program has the core

    def read(self) -> None:
        self._until(self.done_ns)
        self.now_ns += READ_NS

    def _until(self, moment_ns: int) -> None:
        self.now_ns = max(self.now_ns, moment_ns)


@dataclass
class DeviceProducts:
    device: Device
    product_ns: float

    def request(self, count: int) -> None:
        for _ in range(count):
            self.device.request(self.product_ns)

    def sync(self) -> None:
        self.device.sync()

    def read(self) -> float:
        self.device.read()
        return 1.0


@dataclass
class DeviceSession(FakeSession):
    """It evaluates with layers of :mod:`bench_protocol.recompute`."""

    fault: Fault = "none"
    workload: Workload | None = None
    start: Weights = field(default_factory=list)
    data: Data | None = None

    def copied_batches(self, count: int) -> list[NDArray[np.float32]]:
        assert self.data
        rows = np.split(self.data.order[: count * BATCH], count)
        batches = [as_inputs(self.data.train_x[some]) for some in rows]
        if self.fault == "corrupt copy":  # the start of the next batch
            batches[3].reshape(-1)[:8] = batches[4].reshape(-1)[:8]
        return batches

    def evaluate(self, x: NDArray[np.uint8], y: NDArray[np.int32]) -> tuple[float, float]:
        if self.evaluated is None:
            self.logits = self._logits(as_inputs(x[:1]))
            self.evaluated = 0.0
        return float(np.log(np.exp(self.logits).sum()) - self.logits[y[0]]), 0.0

    def _logits(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        assert self.workload
        values = x.astype(np.float64)
        for layer, weights in zip(self.workload.layers, self.start, strict=True):
            used = {name: self._multiplied(value) for name, value in weights.items()}
            values, _ = forward(layer, used, values)
        return np.asarray(values[0])

    def _multiplied(self, weight: NDArray[np.float32]) -> NDArray[np.float64]:
        if self.fault == "float32 in tf32":
            weight = to_tf32(weight)
        return weight.astype(np.float64)


def to_tf32(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rounded to ten bits of the fraction, halves up."""
    bits = values.view(np.uint32)
    return ((bits + np.uint32(1 << 12)) & np.uint32(0xFFFFE000)).view(np.float32)


class DeviceEngine(FakeEngine):
    def __init__(self, fault: Fault, seed: int = 0) -> None:
        clock = FakeClock()
        super().__init__(clock, FakeSession(clock))
        self.fault = fault
        self.device = Device(fault, seed)

    def load(self, workload: Workload, cell: Cell) -> None:
        if self.fault == "raises":
            raise ImportError("planted")

    def products(self, size: int) -> DeviceProducts:
        return DeviceProducts(self.device, 2e18 * size**3 / 1e9 / FLOPS.get(self.fault, 100e9))

    def open(self, workload: Workload, cell: Cell, weights: Weights, data: Data) -> FakeSession:
        return DeviceSession(
            self.clock, fault=self.fault, workload=workload, start=weights, data=data
        )
