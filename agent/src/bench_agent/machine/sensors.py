"""Read sensors: power, clocks, heat and other load. None for what the system does not report."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from . import apple_state, macos
from . import nvidia as driver
from .text import command_output, file_text, whole_or_none

SAMPLE_SECONDS = 0.5
ROOT = Path("/")
# The processor's sensors, by the name of their Linux driver.
CPU_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
# A processor this close to its limit slows down at the next load.
NEAR_THE_LIMIT_CELSIUS = 5.0


@dataclass(frozen=True)
class Power:
    """Power state; None for unknown values. ``mode``: of Macs that have High Power Mode."""

    on_battery: bool | None = None
    low_power_mode: bool | None = None
    mode: str | None = None


@dataclass(frozen=True)
class Governor:
    """Linux's CPU governor; ``preference``: energy_performance_preference."""

    name: str
    driver: str
    preference: str = ""
    turbo: bool | None = None


@dataclass(frozen=True)
class GpuUse:
    """Utilisation of a GPU; ``processes``: other processes that compute on it."""

    name: str
    busy_percent: int | None
    processes: int = 0


@dataclass(frozen=True)
class Load:
    """``load``: mean over a minute. ``pressure_percent``: share of ten seconds that some task
    waited for a core (PSI). ``busiest``: name and CPU per cent of the busiest other process."""

    load: float | None
    cores: int
    pressure_percent: float | None = None
    busiest: tuple[str, float] | None = None
    gpus: tuple[GpuUse, ...] = ()


def power(system: str) -> Power:
    on_battery = _on_battery()
    if system == "Darwin":
        on_battery = apple_state.parse_battery(command_output("pmset", "-g", "batt"))
        low, mode = apple_state.parse_power_mode(command_output("pmset", "-g"))
        return Power(on_battery, low, mode)
    profile = file_text("/sys/firmware/acpi/platform_profile").strip()
    return Power(on_battery, profile == "low-power" if profile else None)


def governor() -> Governor | None:
    """The first core's governor; None without one (virtual machines)."""
    base = ROOT / "sys/devices/system/cpu"
    clock = base / "cpu0/cpufreq"
    name = file_text(clock / "scaling_governor").strip()
    if not name:
        return None
    switches = (
        file_text(base / "intel_pstate/no_turbo").strip() == "1",
        file_text(base / "cpufreq/boost").strip() == "0",
    )
    return Governor(
        name=name,
        driver=file_text(clock / "scaling_driver").strip(),
        preference=file_text(clock / "energy_performance_preference").strip(),
        turbo=not any(switches),
    )


def thermal_pressure() -> str | None:
    """macOS' level in words (:data:`~.machine.apple_state.THERMAL_LEVELS`)."""
    notify = command_output("notifyutil", "-g", "com.apple.system.thermalpressurelevel")
    level = apple_state.parse_thermal(notify, "")
    return level or apple_state.parse_thermal("", command_output("pmset", "-g", "therm"))


def throttle_count(root: Path = ROOT) -> int | None:
    """How often Linux slowed down cores or packages because of heat since it booted."""
    counters = (root / "sys/devices/system/cpu").glob("cpu*/thermal_throttle/*_throttle_count")
    counts = [whole_or_none(file_text(path)) or 0 for path in counters]
    return sum(counts) if counts else None


def throttled_meanwhile() -> int | None:
    """Count how often heat slows down cores during the next half second."""
    before = throttle_count()
    if before is None:
        return None
    time.sleep(SAMPLE_SECONDS)
    return max(0, (throttle_count() or 0) - before)


def cpu_heat() -> tuple[float | None, bool]:
    """Temperature of the processor in degrees Celsius, and whether it is near its limit."""
    try:
        sensors = psutil.sensors_temperatures()
    except (AttributeError, OSError, RuntimeError):  # macOS, containers
        return None, False
    readings = [reading for name in CPU_SENSORS for reading in sensors.get(name, ())]
    near = any(
        reading.high and reading.current >= reading.high - NEAR_THE_LIMIT_CELSIUS
        for reading in readings
    )
    return max((reading.current for reading in readings), default=None), near


def load(system: str, cores: int) -> Load:
    return Load(
        load=load_average(),
        cores=cores,
        pressure_percent=parse_pressure(file_text("/proc/pressure/cpu")),
        busiest=_busiest(),
        gpus=tuple(_gpu_use(system)),
    )


def load_average() -> float | None:
    """Mean number of runnable tasks over a minute."""
    try:
        return psutil.getloadavg()[0]
    except OSError:
        return None


def parse_pressure(text: str) -> float | None:
    """Parse per cent of the last ten seconds from ``/proc/pressure/cpu``."""
    match = re.search(r"^some avg10=([0-9]{1,3}(?:\.[0-9]{1,4})?)", text, re.MULTILINE)
    return float(match.group(1)) if match else None


def _busiest() -> tuple[str, float] | None:
    """Name and CPU per cent of the busiest other process."""
    processes = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            process.cpu_percent()  # the first call only starts the measurement
            processes.append(process)
    time.sleep(SAMPLE_SECONDS)
    use = []
    for process in processes:
        with suppress(psutil.Error):
            if process.pid != os.getpid():
                use.append((process.cpu_percent(), process.name()))
    most = max(use, default=None)
    return (most[1], most[0]) if most else None


def _gpu_use(system: str) -> Iterator[GpuUse]:
    if system == "Darwin":
        for gpu in macos.accelerators():
            if gpu.busy_percent is not None:
                yield GpuUse(name=gpu.model or "Apple GPU", busy_percent=gpu.busy_percent)
        return
    with driver.nvml() as library:
        for name, percent, processes in driver.busy(library) if library is not None else ():
            yield GpuUse(name=name, busy_percent=percent, processes=processes)


def _on_battery() -> bool | None:
    try:
        battery = psutil.sensors_battery()
    except (AttributeError, OSError, RuntimeError):
        return None
    if battery is None or battery.power_plugged is None:
        return None
    return not battery.power_plugged
