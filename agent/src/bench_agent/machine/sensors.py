"""Read sensors: power, clocks, heat and other load. None for what the system does not report."""

import re
import time
from dataclasses import dataclass
from pathlib import Path

from bench_protocol.payload import readings

from . import apple_state, counters
from .text import command_output, file_text, whole_or_none

SAMPLE_SECONDS = 0.5
ROOT = Path("/")
CPUS = "sys/devices/system/cpu"
# The processor's sensors, by the name of their Linux driver.
CPU_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
# A processor this close to its limit slows down at the next load.
NEAR_THE_LIMIT_CELSIUS = 5.0
# A board that does not set the limit gives zero, or less than any processor's.
LEAST_LIMIT_CELSIUS = 60.0
# These facts describe a power supply.
SUPPLY = ("type", "status", "online", "present")
CHARGER = re.compile("Mains|USB|Wireless")
# Names of devices that have batteries of their own, and the buses that such devices hang on.
PERIPHERAL = re.compile(r"^hid|mouse|keyboard|headset|controller", re.IGNORECASE)
OUTER_BUS = re.compile(r"/usb\d+/|/uhid/|/bluetooth/")
CHARGED = {"Charging", "Full", "Not charging"}


@dataclass(frozen=True)
class Power:
    """Power state; None for unknown values. ``mode``: of Macs that have High Power Mode."""

    on_battery: bool | None = None
    low_power_mode: bool | None = None
    mode: str | None = None


def power(system: str) -> Power:
    if system == "Darwin":
        on_battery = apple_state.parse_battery(command_output("pmset", "-g", "batt"))
        low, mode = apple_state.parse_power_mode(command_output("pmset", "-g"))
        return Power(on_battery, low, mode)
    profile = file_text("/sys/firmware/acpi/platform_profile").strip()
    return Power(_on_battery(), profile == "low-power" if profile else None)


def governor() -> str | None:
    """The CPU governors of this process's cores; None without one (virtual machines)."""
    files = (
        path
        for core in counters.own_cores() or "*"
        for path in (ROOT / CPUS).glob(f"cpu{core}/cpufreq/scaling_governor")
    )
    return " and ".join(sorted({file_text(path).strip() for path in files} - {""})) or None


def thermal_pressure() -> str | None:
    """macOS' level in words (:data:`~.machine.apple_state.THERMAL_LEVELS`)."""
    notify = command_output("notifyutil", "-g", "com.apple.system.thermalpressurelevel")
    return apple_state.parse_thermal(notify)


def throttle_count(root: Path = ROOT) -> int | None:
    """How often Linux slowed down this process's cores and their packages because of heat since it
    booted."""
    own = counters.own_cores()
    cores = "*" if own is None else own
    files = (
        path
        for core in cores
        for path in (root / CPUS).glob(f"cpu{core}/thermal_throttle/*_throttle_count")
    )
    counts = [whole_or_none(file_text(path)) or 0 for path in files]
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
    sensors = counters.temperatures()
    every = (reading for name in CPU_SENSORS for reading in sensors.get(name, ()))
    found = [one for one in every if readings.possible("celsius", one.current) is not None]
    # ``high`` is where a fan speeds up on many boards, ``critical`` where the clock falls. What is
    # far above its limit runs: that is no limit.
    near = any(
        -NEAR_THE_LIMIT_CELSIUS <= one.current - limit <= NEAR_THE_LIMIT_CELSIUS
        for one in found
        if (limit := readings.possible("celsius", one.critical) or 0.0) >= LEAST_LIMIT_CELSIUS
    )
    return max((one.current for one in found), default=None), near


def _on_battery(root: Path = ROOT) -> bool | None:
    """Whether a Linux machine runs on its own battery; None without one. A mouse, a pen and a
    headset have batteries too: their scope is the device, or they hang on USB or Bluetooth."""
    own = [
        {name: file_text(folder / name).strip() for name in SUPPLY}
        for folder in sorted((root / "sys/class/power_supply").glob("*"))
        if not (PERIPHERAL.search(folder.name) or OUTER_BUS.search(str(folder.resolve())))
        if file_text(folder / "scope").strip().lower() != "device"
    ]
    batteries = [one for one in own if one["type"] == "Battery" and one["present"] != "0"]
    if not batteries:
        return None
    # 2 is a charger whose voltage is set.
    if any(CHARGER.match(one["type"]) and one["online"] in ("1", "2") for one in own):
        return False
    states = {one["status"] for one in batteries}
    # A full battery is in use when the mains are off.
    off = "Charging" not in states and any(one["type"] == "Mains" and one["online"] for one in own)
    return True if off or "Discharging" in states else False if states & CHARGED else None
