"""Choose the energy meter for a device on this system."""

import platform
from pathlib import Path

from bench_protocol.catalogue.matrix import Device

from .ioreport import IoReport
from .meter import Meter, MeterProblem
from .nvml import Nvml
from .rapl import Rapl


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
