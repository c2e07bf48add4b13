"""Bounds of a device: FLOP/s that nothing of its kind exceeds, from what its machine reports.

A peak is what a vendor states of a device; a bound only holds, and may lie far above. Peaks are
used where there is one. Otherwise a bound is units times operations a cycle times clock; figures
and their sources are in ``peaks.json``.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..catalogue import peaks
from ..catalogue.matrix import Device, Precision
from .hardware import clean, hardware_name
from .machine import Gpu, Machine

# Apple GPUs have half-precision matrix units since the M5.
APPLE_CHIP = re.compile(r"Apple M([1-5])(?: Pro| Max| Ultra)?$")
WITH_MATRIX_UNITS = "5"


@dataclass(frozen=True)
class Bound:
    """FLOP/s, and what the bound is, for a sentence (``the vendor's peak``)."""

    flops: float
    words: str


def of_device(machine: Machine, device: Device, precision: Precision) -> Bound | None:
    """The bound of a device of this machine in a precision, or None if none is known."""
    gpu = machine.gpu(device)
    hardware = hardware_name(machine, device)
    peak = peaks.peak_flops(hardware, precision)
    if peak is not None:
        return _of_peak(peak, peaks.boost_mhz(hardware), gpu)
    if device.kind == "cpu":
        return _of_cpu(machine, precision)
    if gpu is None or not gpu.cores:
        return None
    return _of_metal(gpu, precision) if gpu.kind == "metal" else _of_cuda(gpu, precision)


def _of_peak(peak: float, boost_mhz: float | None, gpu: Gpu | None) -> Bound:
    """The vendor's peak. Where it holds at a boost clock, the cards run faster than that: then the
    peak at the maximum clock that the driver reports."""
    most_mhz = gpu.maximum_clock_mhz if gpu else None
    if boost_mhz is None or most_mhz is None or most_mhz <= boost_mhz:
        return Bound(peak, "the vendor's peak")
    return Bound(peak * most_mhz / boost_mhz, f"the vendor's peak at {most_mhz:,} MHz")


def _of_metal(gpu: Gpu, precision: Precision) -> Bound | None:
    """Cores of the M1 to M5 at a clock that none of them reaches."""
    chip = APPLE_CHIP.match(clean(gpu.name))
    half = precision.startswith("mixed_")
    if chip is None or (precision != "float32" and chip[1] == WITH_MATRIX_UNITS):
        return None
    mhz = peaks.table()["bounds"]["apple_gpu"]["most_mhz"]
    a_cycle = peaks.table()["apple_gpus"]["flops_a_cycle"] * (2 if half else 1)
    return _bound(gpu.cores or 0, "GPU cores", a_cycle, mhz)


def _of_cuda(gpu: Gpu, precision: Precision) -> Bound | None:
    """Multiprocessors at the maximum clock that the driver reports."""
    rates = peaks.table()["bounds"]["cuda"]["rates"].get(gpu.compute_capability, {})
    if precision not in rates or not gpu.maximum_clock_mhz:
        return None
    return _bound(gpu.cores or 0, "multiprocessors", rates[precision], gpu.maximum_clock_mhz)


def _of_cpu(machine: Machine, precision: Precision) -> Bound | None:
    """All cores, whatever part of them the process may use, at the fastest clock on sale.

    A core of a virtual machine may be any thread of its host, so there all threads count.
    """
    cpu, virtual = machine.cpu, machine.os.virtual_machine is not None
    threads = cpu.logical_cores or cpu.physical_cores
    cores = threads if virtual else cpu.physical_cores or threads
    figures = peaks.table()["bounds"]["cpu"]
    apple = "Apple" in cpu.brand
    flags = () if apple else cpu.instruction_sets  # its matrix units are shared, see below
    unit = _vector_unit(figures["units"], cpu.architecture, flags)
    if not cores or unit is None or precision not in unit:
        return None
    a_cycle: float = unit[precision]
    if apple:
        clusters = cores if virtual else math.ceil(cores / figures["apple"]["cores_a_cluster"])
        a_cycle += figures["apple"][precision] * clusters / cores
    return _bound(cores, "cores", a_cycle, figures["most_mhz"])


def _vector_unit(
    units: list[dict[str, Any]], architecture: str, flags: tuple[str, ...]
) -> Mapping[str, Any] | None:
    """The widest unit whose instructions are reported."""
    has = {flag.lower() for flag in flags}
    fitting = (
        unit
        for unit in units
        if architecture.lower() in unit["architectures"]
        and (unit["flag"] is None or unit["flag"] in has)
    )
    return next(fitting, None)


def _bound(units: int, what: str, a_cycle: float, mhz: float) -> Bound:
    words = f"{units:,} {what} of {a_cycle:,.4g} operations a cycle at {mhz:,} MHz"
    return Bound(units * a_cycle * mhz * 1e6, words)
