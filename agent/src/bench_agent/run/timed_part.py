"""The timed part by the parent's clock and meter, from its start to the end of its last block."""

import platform
from collections.abc import Callable
from pathlib import Path

from bench_protocol.base.units import plain_text
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload import energy_bounds
from bench_protocol.payload.readings import Energy
from bench_protocol.payload.result import Blocks
from bench_protocol.payload.window import Window

from ..base.messages import BlockDone, PhaseBegan, WorkerEvent
from .energy.ioreport import IoReport
from .energy.meter import Counters, Meter, MeterProblem
from .energy.nvml import Nvml
from .energy.rapl import Rapl

# Counters update at most ten times a second, and a block's end is noticed a little late.
SHORTEST_SECONDS = 10.0


def meter_for(device: Device, system: str = platform.system(), root: Path = Path("/")) -> Meter:
    """The meter whose scope contains this device.

    Raises:
        MeterProblem: there is none, and why.
    """
    if device.kind == "cuda":
        return Nvml(device.index)
    if system == "Darwin":
        return IoReport()
    if system == "Linux" and device.kind == "cpu":
        return Rapl(root)
    raise MeterProblem(f"no energy counter is known for {device.kind} on {system}")


class TimedPart:
    """Reads clock and meter when the worker starts timing, and at the end of each block; the matrix
    product and the evaluation follow the last one. ``clock_ns``: monotonic, since the run's
    start."""

    def __init__(
        self,
        device: Device,
        clock_ns: Callable[[], int],
        open_meter: Callable[[Device], Meter] = meter_for,
    ) -> None:
        self._clock_ns = clock_ns
        self._meter: Meter | None = None
        self._problem = "nothing was timed"
        self._began: tuple[int, Counters] | None = None
        self._ended: tuple[int, Counters] | None = None
        self._reported: list[tuple[int, int]] = []
        self._received_ns: list[int] = []
        try:
            self._meter = open_meter(device)
        except MeterProblem as problem:
            self._problem = str(problem)

    def heard(self, message: WorkerEvent) -> None:
        if isinstance(message, BlockDone):
            self._ended = self._read()
            self._received_ns.append(self._ended[0])
            self._reported.append((message.steps, message.duration_ns))
        elif message == PhaseBegan(phase="timing"):
            self._began = self._read()
            self._received_ns = [self._began[0]]

    def window(self, blocks: Blocks) -> Window | None:
        """The window; None if no block was reported. A worker whose clock is slow, or whose list
        differs from its reports, does not fill it (:func:`bench_protocol.payload.window.judge`)."""
        if self._began is None or self._ended is None:
            return None
        listed = [(blocks.steps_per_block, duration) for duration in blocks.durations_ns]
        if blocks.last_block:
            listed.append((blocks.last_block.steps, blocks.last_block.duration_ns))
        return Window(received_ns=tuple(self._received_ns), blocks_agree=listed == self._reported)

    def energy(self) -> Energy:
        """The energy of the window, or ``none`` with the reason."""
        if self._meter is not None:
            self._meter.close()
        if self._meter is None or self._began is None or self._ended is None:
            return Energy(source="none", reason=plain_text(self._problem))
        (began_ns, before), (ended_ns, after) = self._began, self._ended
        window_ns = ended_ns - began_ns
        if window_ns < SHORTEST_SECONDS * 1e9:
            reason = f"the timed part took {window_ns / 1e9:.1f} s; energy needs 10 s or more"
            return Energy(source="none", reason=reason)
        scope = self._meter.scope
        energy = Energy(
            source=self._meter.source,
            scope=scope,
            energy_mj=after[scope] - before[scope],
            window_ns=window_ns,
        )
        problem = energy_bounds.power_problem(energy)
        return energy if problem is None else Energy(source="none", reason=problem)

    def _read(self) -> tuple[int, Counters]:
        """The clock, then the counters; none after the meter failed."""
        now_ns = self._clock_ns()
        if self._meter is not None:
            try:
                return now_ns, self._risen(self._meter.read())
            except MeterProblem as problem:
                self._meter.close()
                self._meter, self._problem = None, str(problem)
        return now_ns, {}

    def _risen(self, counters: Counters) -> Counters:
        """The counters, which were read before too: one that fell between two blocks may have
        risen above its first value since."""
        _, before = self._ended or self._began or (0, counters)
        if before.keys() != counters.keys() or any(counters[one] < before[one] for one in before):
            raise MeterProblem("the counters changed or fell in between")
        return counters
