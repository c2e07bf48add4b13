"""Power, clocks, heat and other work, read for doctor. Silent where the system does not tell."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from ..machine import macos
from ..machine import nvidia as driver
from ..machine.text import command_output, file_text, whole_or_none
from .quiet import (
    Governor,
    GpuUse,
    Load,
    Power,
    parse_battery,
    parse_low_power,
    parse_pressure,
    parse_thermal,
)

SAMPLE_SECONDS = 0.5


def power(system: str) -> Power:
    """Battery and low-power mode."""
    if system == "Darwin":
        return Power(
            on_battery=parse_battery(command_output("pmset", "-g", "batt")),
            low_power_mode=parse_low_power(command_output("pmset", "-g")),
        )
    profile = file_text("/sys/firmware/acpi/platform_profile").strip()
    return Power(
        on_battery=on_battery(),
        low_power_mode=profile == "low-power" if profile else None,
    )


def governor(root: Path) -> Governor | None:
    """How the first core's clock is chosen; None where it cannot be (virtual machines)."""
    base = root / "sys/devices/system/cpu"
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


def thermal(system: str, root: Path) -> tuple[str | None, int | None]:
    """macOS' pressure level; on Linux how often cores were slowed down in half a second."""
    if system == "Darwin":
        notify = command_output("notifyutil", "-g", "com.apple.system.thermalpressurelevel")
        return parse_thermal(notify, command_output("pmset", "-g", "therm")), None
    before = _throttle_count(root)
    if before is None:
        return None, None
    time.sleep(SAMPLE_SECONDS)
    return None, max(0, (_throttle_count(root) or 0) - before)


def load(system: str, cores: int) -> Load:
    """Load, pressure, the busiest other process, and the GPUs."""
    try:
        mean: float | None = psutil.getloadavg()[0]
    except OSError:
        mean = None
    return Load(
        load=mean,
        cores=cores,
        pressure_percent=parse_pressure(file_text("/proc/pressure/cpu")),
        busiest=_busiest(),
        gpus=tuple(_gpu_use(system)),
    )


def _busiest() -> tuple[str, float] | None:
    """Name and CPU per cent of the process that works most, but for this one."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            process.cpu_percent()  # the first call only starts the measurement
            found.append(process)
    time.sleep(SAMPLE_SECONDS)
    use = []
    for process in found:
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


def on_battery() -> bool | None:
    """From the system's power supplies; None without a battery."""
    try:
        battery = psutil.sensors_battery()
    except (AttributeError, OSError, RuntimeError):
        return None
    plugged = None if battery is None else battery.power_plugged
    return None if plugged is None else not plugged


def _throttle_count(root: Path) -> int | None:
    counters = (root / "sys/devices/system/cpu").glob("cpu*/thermal_throttle/*_throttle_count")
    counts = [whole_or_none(file_text(path)) or 0 for path in counters]
    return sum(counts) if counts else None
