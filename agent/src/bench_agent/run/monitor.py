"""Monitor a worker from the parent process: sensors, other programs, energy, and clocks."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload import doubts
from bench_protocol.payload.readings import Conditions, Energy, Telemetry
from bench_protocol.payload.result import Warn

from ..base.messages import Answer
from ..machine import counters
from .telemetry import Reading, Sampler
from .timed_part import TimedPart


@dataclass(frozen=True)
class Clocks:
    """Three clocks in seconds: wall clock, one that stops in sleep, one that does not."""

    wall: float
    awake: float
    asleep_too: float


def read_clocks() -> Clocks:
    """Python's monotonic clock, which times all else, stops while a machine sleeps."""
    # Linux has a clock of its own for it; on macOS the raw monotonic clock goes on.
    through_sleep = time.CLOCK_MONOTONIC if sys.platform == "darwin" else time.CLOCK_BOOTTIME
    return Clocks(time.time(), time.monotonic(), time.clock_gettime(through_sleep))


class Monitor:
    """A context manager around one worker. ``before``: the machine's conditions before it started.
    ``clock_ns``: since the run's start. ``sensed``: receives each sample of the sensors."""

    def __init__(
        self,
        device: Device,
        before: Conditions,
        cores: int,
        clock_ns: Callable[[], int],
        sensed: Callable[[Reading], None] = lambda reading: None,
        read: Callable[[], Clocks] = read_clocks,
    ) -> None:
        self._before = before
        self._cores = cores
        self._read = read
        self._sampler = Sampler(device, clock_ns, sensed)
        self._timed = TimedPart(device, clock_ns)
        self.heard = self._timed.heard

    def __enter__(self) -> "Monitor":
        self._began = self._read(), read_used()
        self._sampler.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._used = busy_cores(self._began[1], read_used())
        self._sampler.__exit__()
        self._clocks = of_clocks(self._began[0], self._read())

    def telemetry(self) -> Telemetry:
        return self._sampler.telemetry()

    def seen_with(self, answer: Answer) -> Answer:
        """The answer with the used energy, the window of the blocks and warnings about
        conditions."""
        warnings = [
            *answer.warnings,
            *doubts.of_conditions(self._before),
            *doubts.of_telemetry(self.telemetry()),
            *([] if self._used is None else doubts.of_other_load(self._used, self._cores)),
            *self._clocks,
        ]
        outcome, energy = answer.outcome, self._timed.energy()
        if measurement := outcome.measurement:
            warnings += doubts.of_blocks(measurement.blocks)
            if any(doubt.code == "slept" for doubt in self._clocks):
                energy = Energy(source="none", reason="the machine slept in between")
            window = self._timed.window(measurement.blocks)
            measurement = measurement.model_copy(update={"energy": energy, "window": window})
            outcome = outcome.model_copy(update={"measurement": measurement})
        return answer.model_copy(update={"outcome": outcome, "warnings": tuple(warnings)})


def of_clocks(began: Clocks, ended: Clocks) -> list[Warn]:
    """Warnings that the machine slept, or that its wall clock was set. Block times are right in
    either case: their clock stops in sleep and is never set."""
    awake = ended.awake - began.awake
    slept = ended.asleep_too - began.asleep_too - awake
    return doubts.of_clocks(slept, ended.wall - began.wall - awake - slept)


@dataclass(frozen=True)
class ProcessorTime:
    """Processor seconds so far: of all programs, and of this one and its ended children."""

    at: float
    everyone: float | None
    ours: float


def read_used() -> ProcessorTime:
    import resource  # not on native Windows, where a run is refused with a reason

    everyone = counters.busy_seconds()
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return ProcessorTime(time.monotonic(), everyone, sum(u.ru_utime + u.ru_stime for u in usages))


def busy_cores(began: ProcessorTime, ended: ProcessorTime) -> float | None:
    """The average number of this process's cores that other programs used between two readings;
    None where that cannot be read."""
    if began.everyone is None or ended.everyone is None:
        return None
    others = (ended.everyone - began.everyone) - (ended.ours - began.ours)
    return max(0.0, others / max(ended.at - began.at, 1e-9))
