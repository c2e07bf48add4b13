"""Idle gate: before a repeat, wait up to a limit until the machine is idle and cool."""

import platform
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from bench_protocol.base.format import rough
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload import doubt_text, doubts
from bench_protocol.payload.readings import Conditions, possible
from bench_protocol.payload.result import Warn

from ..base.errors import NotIdle
from ..machine import cgroup, counters, macos, nvidia, sensors
from ..machine.text import slug_or_none
from ..machine.wire import tolerant
from .interrupt import Stop, waiting

POLL_SECONDS = 2.0
# Readings of a GPU that seems busy.
MOST_READINGS = 3
IDLE_AND_COOL = ("not_idle", "hot")
COOL = ("hot",)
# Conditions that waiting does not change.
UNCHANGED = ("on_battery", "low_power_mode")


def look(device: Device, system: str = platform.system()) -> Conditions:
    """Load, heat and power state of this machine now. Takes half a second to a second."""
    throttled = sensors.throttled_meanwhile()
    power = sensors.power(system)
    _celsius, near_limit = sensors.cpu_heat()
    pressure = sensors.thermal_pressure() if system == "Darwin" else None
    if throttled or near_limit:
        pressure = "throttled" if throttled else "near-limit"
    facts: dict[str, Any] = {
        "load_average": counters.load_average(),
        "cpu_utilisation_percent": counters.busy_percent(sensors.SAMPLE_SECONDS),
        "available_memory_bytes": min(
            filter(None, (counters.memory("available"), cgroup.available_bytes())), default=None
        ),
        "on_battery": power.on_battery,
        "low_power_mode": power.low_power_mode,
        "thermal_pressure": pressure,
        "cpu_governor": slug_or_none(sensors.governor() or power.mode),
    }
    return tolerant(Conditions, facts | _gpu(device))


@dataclass(frozen=True)
class IdleGate:
    """Delays a repeat until the machine is idle and cool, or the time limit is over; ``strict``:
    stop the run instead of adding a warning, also on battery."""

    wait_seconds: float = 0.0
    strict: bool = False
    look: Callable[[Device], Conditions] = look
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def wait(
        self,
        device: Device,
        gone: Collection[str],
        say: Callable[[str], None],
        stop: Stop,
    ) -> Conditions:
        """Poll the machine until none of these warnings remains.

        ``gone``: codes of :mod:`bench_protocol.payload.doubts`. ``say``: shows the user, once, what
        the gate waits for. Returns the last reading, with ``waited_ns``.

        Raises:
            NotIdle: with ``strict``, a warning remains.
        """
        began = self.clock()
        said = False
        with waiting(stop):
            while True:
                conditions = self.look(device)
                warnings = doubts.of_conditions(conditions)
                waiting_for = [doubt for doubt in warnings if doubt.code in gone]
                left = self.wait_seconds - (self.clock() - began)
                if not waiting_for or left <= 0 or stop.requested:
                    break
                if not said:
                    say(f"{_texts(waiting_for)}: waiting up to {rough(self.wait_seconds)}")
                    said = True
                self.sleep(min(POLL_SECONDS, left))
        remaining = [doubt for doubt in warnings if doubt.code in gone or doubt.code in UNCHANGED]
        if self.strict and remaining:
            raise NotIdle(_texts(remaining))
        waited_ns = round((self.clock() - began) * 1e9)
        return conditions.model_copy(update={"waited_ns": waited_ns})


def remaining(conditions: Conditions, gone: Collection[str]) -> str:
    """Those of some warnings that still hold, in words; empty if none does."""
    return _texts([doubt for doubt in doubts.of_conditions(conditions) if doubt.code in gone])


def _texts(warnings: list[Warn]) -> str:
    return ", ".join(map(doubt_text.words, warnings))


def _least_use(read: Callable[[], float | None]) -> float | None:
    """The least use of a GPU over a second, in per cent; read once if it is idle.

    A screen is drawn in bursts, and a figure can be a second old, so that it contains the worker
    that has just ended. Other work shows in every reading.
    """
    least = read()
    for _ in range(MOST_READINGS - 1):
        if least is None or least <= doubts.BUSY_PERCENT:
            break
        time.sleep(sensors.SAMPLE_SECONDS)
        again = read()
        least = least if again is None else min(least, again)
    return least


def _metal_use() -> float | None:
    busy = [gpu.busy_percent for gpu in macos.accelerators() if gpu.busy_percent is not None]
    return max(busy, default=None)


def _gpu(device: Device) -> dict[str, Any]:
    if device.kind == "metal":
        return {"gpu_utilisation_percent": _least_use(_metal_use)}
    if device.kind != "cuda":
        return {}
    with nvidia.nvml() as library:
        handle = nvidia.handle_of(library, device.index) if library is not None else None
        if handle is None:
            return {}

        def use() -> float | None:
            rates = nvidia.query(library, "DeviceGetUtilizationRates", handle)
            return possible("percent", getattr(rates, "gpu", None))

        memory = nvidia.query(library, "DeviceGetMemoryInfo", handle)
        running = nvidia.query(library, "DeviceGetComputeRunningProcesses", handle)
        facts = {
            "gpu_utilisation_percent": _least_use(use),
            "gpu_memory_used_bytes": getattr(memory, "used", None),
            "gpu_processes": len(running) if isinstance(running, list) else None,
        }
        hot = (nvidia.clocks_event_reasons(library, handle) or 0) & doubts.THROTTLED_BY_HEAT
        return facts | ({"thermal_pressure": "throttled"} if hot else {})
