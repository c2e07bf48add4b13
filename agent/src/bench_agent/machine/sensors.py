"""Read sensors: power, clocks, heat and other load. None for what the system does not report."""

import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from . import apple_state
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


def power(system: str) -> Power:
    on_battery = _on_battery()
    if system == "Darwin":
        on_battery = apple_state.parse_battery(command_output("pmset", "-g", "batt"))
        low, mode = apple_state.parse_power_mode(command_output("pmset", "-g"))
        return Power(on_battery, low, mode)
    profile = file_text("/sys/firmware/acpi/platform_profile").strip()
    return Power(on_battery, profile == "low-power" if profile else None)


def governor() -> str | None:
    """The first core's CPU governor; None without one (virtual machines, macOS)."""
    return file_text(ROOT / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or None


def thermal_pressure() -> str | None:
    """macOS' level in words (:data:`~.machine.apple_state.THERMAL_LEVELS`)."""
    notify = command_output("notifyutil", "-g", "com.apple.system.thermalpressurelevel")
    return apple_state.parse_thermal(notify)


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


def load_average() -> float | None:
    """Mean number of runnable tasks over a minute."""
    try:
        return psutil.getloadavg()[0]
    except OSError:
        return None


def _on_battery() -> bool | None:
    try:
        battery = psutil.sensors_battery()
    except (AttributeError, OSError, RuntimeError):
        return None
    if battery is None or battery.power_plugged is None:
        return None
    return not battery.power_plugged
