"""Figures derived from one measurement: throughput, energy, epoch time, spread. Agent and server
share them."""

from collections.abc import Mapping, Sequence
from statistics import fmean, median, quantiles
from typing import Literal

from ..catalogue.matrix import DeviceKind
from ..catalogue.workloads import Workload
from .result import Measurement

TimingKind = Literal["long", "short"]
# A timing is long from this time on. A processor's or a GPU's boost clock must not be all that is
# timed: a device that boosts for 3 s and has a fifth less speed after that looks 16 % faster in
# 2 s than in 10 s.
LONG_SECONDS: Mapping[DeviceKind, float] = {"cpu": 10.0, "metal": 30.0, "cuda": 30.0}


def timing_kind(device: DeviceKind, timed_ns: float) -> TimingKind:
    """Whether a timed part of this duration, last partial block included, is long or short."""
    return "long" if timed_ns >= LONG_SECONDS[device] * 1e9 else "short"


def samples_per_second(measurement: Measurement, batch_size: int) -> float:
    """All timed samples over all timed seconds: what happens once an epoch is in it."""
    blocks = measurement.blocks
    return blocks.steps * batch_size * 1e9 / blocks.total_ns


def mean_over_median(measurement: Measurement) -> float:
    """Mean of the block times over their median: above 1 where few blocks take much longer."""
    durations = measurement.blocks.durations_ns
    return fmean(durations) / median(durations)


def energy_per_sample_mj(measurement: Measurement, batch_size: int) -> float | None:
    """Mean power over the energy's window times the time of a sample, in millijoules; None without.

    The window may be a little longer or shorter than the blocks: the counter is read when the
    parent process receives a message.
    """
    blocks, energy = measurement.blocks, measurement.energy
    if energy.energy_mj is None or energy.window_ns is None:
        return None
    ns_per_sample = blocks.total_ns / blocks.steps / batch_size
    return energy.energy_mj / energy.window_ns * ns_per_sample


def epoch_seconds(workload: Workload, batch_size: int, samples_per_second: float) -> float:
    """Time of an epoch of full batches; the last short batch is dropped."""
    return workload.steps_per_epoch(batch_size) * batch_size / samples_per_second


def within_run_spread(measurement: Measurement) -> float:
    """Interquartile range of the block times over their median; 0 for a single block.

    It says how steady this process was. It is not a confidence interval: blocks of one process
    are correlated, and processes differ.
    """
    durations = measurement.blocks.durations_ns
    return relative_spread(durations) if len(durations) > 1 else 0.0


def relative_spread(durations_ns: Sequence[int]) -> float:
    """Interquartile range over the median of two or more durations.

    The middle half of the durations differs by at most this share of the median. Single disturbed
    ones do not change it.
    """
    lower, middle, upper = quantiles(durations_ns, n=4, method="inclusive")
    return (upper - lower) / middle
