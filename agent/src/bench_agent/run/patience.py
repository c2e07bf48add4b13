"""Limits of a worker's time and silence, and why a first worker may be silent for long."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from bench_protocol.catalogue.matrix import Device

from ..plan.estimates import MeasuredTimes
from ..plan.plan import PlannedCell
from .worker_process import IN_TURNS, Limits

LEAST_TOTAL_SECONDS = 600.0
ESTIMATE_FACTOR = 10
# TensorFlow warns of "30 minutes or longer" (tensorflow/core/common_runtime/gpu/gpu_device.cc).
PTX_SECONDS = 3600.0
# One form of a step, whose session compiles it for the timing and for its readings, as a repeat's
# does within its own limits. A limit, not a measurement.
FORM_SECONDS = 240.0


class Place(NamedTuple):
    """The place of a worker: a framework of an interpreter (None: the agent's own), a device."""

    framework: str
    device: Device
    python: str | None

    def __str__(self) -> str:
        return f"{self.framework} on {self.device}"


def place_of(planned: PlannedCell) -> Place:
    return Place(planned.cell.framework, planned.cell.device, planned.python)


def may_compile_kernels(place: Place, measured_times: MeasuredTimes) -> bool:
    """Whether the driver may first have to compile the framework's GPU kernels.

    TensorFlow's wheels contain machine code up to compute capability 8.9, and PTX for newer GPUs.
    The driver compiles PTX in the first process and keeps the result in a cache of the user, keyed
    by the PTX itself. So a first process under another interpreter finds it there only if its
    TensorFlow is the same build, which the agent cannot know. Waiting for longer is harmless;
    ending a process that compiles is not.
    """
    if place.framework != "tensorflow" or place.device.kind != "cuda":
        return False
    earlier = measured_times.cells.values()
    return all(Place(each.framework, each.device, each.python) != place for each in earlier)


def why_silent(place: Place, measured_times: MeasuredTimes) -> str | None:
    if not may_compile_kernels(place, measured_times):
        return None
    under = f" under {place.python}" if place.python else ""
    return (
        f"{place}: the driver may compile its GPU kernels in the first process of this "
        f"machine{under} (PTX); up to {PTX_SECONDS / 60:.0f} minutes without a sign are normal"
    )


def limits_for(
    place: Place, estimate_seconds: float, measured_times: MeasuredTimes = MeasuredTimes()
) -> Limits:
    """The limits of one worker. ``estimate_seconds``: of its work; 0 if unknown. Without
    ``measured_times`` it may be the machine's first."""
    total_seconds = max(LEAST_TOTAL_SECONDS, ESTIMATE_FACTOR * estimate_seconds)
    if may_compile_kernels(place, measured_times):
        return Limits(silence_seconds=PTX_SECONDS, total_seconds=total_seconds + PTX_SECONDS)
    return Limits(total_seconds=total_seconds)


def form_limits(place: Place, measured_times: MeasuredTimes) -> Limits:
    compiling = PTX_SECONDS if may_compile_kernels(place, measured_times) else 0.0
    seconds = FORM_SECONDS + compiling
    return Limits(silence_seconds=seconds, total_seconds=seconds)


def limits_in_turns(sides: Iterable[PlannedCell], measured_times: MeasuredTimes) -> Limits:
    """The limits of workers that time in turns: each is also silent while another one works."""
    each = [limits_for(place_of(s), s.estimate_seconds, measured_times) for s in sides]
    silences = (limits.silence_seconds for limits in each)
    return replace(
        IN_TURNS,
        silence_seconds=max(IN_TURNS.silence_seconds, *silences),
        total_seconds=max(IN_TURNS.total_seconds, sum(limits.total_seconds for limits in each)),
    )
