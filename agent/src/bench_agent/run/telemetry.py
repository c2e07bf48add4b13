"""Telemetry: sample the machine's sensors about once a second while a worker runs."""

import logging
import platform
import threading
from collections.abc import Callable
from typing import Any

from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.readings import Sensor, Telemetry, possible_only, thinned

from ..machine import cgroup, counters, macos, nvidia, sensors
from ..machine.apple_state import THERMAL_LEVELS

INTERVAL_SECONDS = 1.0
# A GPU exceeds the limit of its power for moments only; a reading far above it is none.
ABOVE_THE_LIMIT = 2.0
LOG = logging.getLogger(__name__)
Reading = dict[Sensor, float | None]
SensorListener = Callable[[Reading], None]


class Sampler:
    """A thread that reads the sensors of the CPU and a device until the block ends.

    ``clock_ns``: monotonic since the run's start. ``listener``: gets each reading, in this thread.
    A sensor that raises is logged once and not read again; the others continue.
    """

    def __init__(
        self,
        device: Device,
        clock_ns: Callable[[], int],
        listener: SensorListener = lambda reading: None,
    ) -> None:
        self._device = device
        self._listener = listener
        self._clock_ns = clock_ns
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._at_ns: list[int] = []
        self._readings: list[Reading] = []

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def telemetry(self) -> Telemetry:
        """All samples so far, a column for each sensor. Sensors without an answer are left out."""
        answered = {
            sensor
            for reading in self._readings
            for sensor, value in reading.items()
            if value is not None
        }
        columns = {
            sensor: tuple(reading.get(sensor) for reading in self._readings)
            for sensor in sorted(answered)
        }
        return thinned(self._at_ns, columns)

    def _run(self) -> None:
        mac = platform.system() == "Darwin"
        counters.busy_percent()  # the first call only starts the measurement
        with nvidia.nvml() as library:
            handle = None
            if library is not None and self._device.kind == "cuda":
                handle = nvidia.handle_of(library, self._device.index)
            readers: list[Callable[[], Reading]] = [read_host, read_mac if mac else read_linux]
            if handle is not None:
                readers.append(lambda: read_nvidia(library, handle))
            while not self._ended.wait(INTERVAL_SECONDS):
                reading: Reading = {}
                for reader in tuple(readers):
                    try:
                        reading |= reader()
                    except Exception as error:
                        readers.remove(reader)
                        LOG.warning(
                            "sensors are no longer read: %s: %s", type(error).__name__, error
                        )
                self._at_ns.append(self._clock_ns())
                possible = possible_only(reading)
                self._readings.append(possible)
                self._listener(possible)


def read_host() -> Reading:
    load, used = counters.load_average(), cgroup.used_bytes()
    if used is None:
        used = counters.memory("used")
    return {
        "cpu_utilisation_percent": counters.busy_percent(),
        "load_average": None if load is None else round(load, 2),
        "memory_used_bytes": None if used is None else float(used),
    }


def read_linux() -> Reading:
    throttled = sensors.throttle_count()
    return {
        "cpu_temperature_celsius": sensors.cpu_heat()[0],
        "cpu_throttle_count": None if throttled is None else float(throttled),
    }


def read_mac() -> Reading:
    """Thermal pressure and use of the GPU, without administrator rights."""
    level = sensors.thermal_pressure()
    busy = [gpu.busy_percent for gpu in macos.accelerators() if gpu.busy_percent is not None]
    return {
        "thermal_pressure_level": float(THERMAL_LEVELS.index(level)) if level else None,
        "gpu_utilisation_percent": float(max(busy)) if busy else None,
    }


def read_nvidia(nvml: Any, handle: Any) -> Reading:
    """Utilisation, clock, temperature, power, memory and throttle reasons of one GPU."""

    def say(name: str, *arguments: int) -> Any:
        return nvidia.query(nvml, f"DeviceGet{name}", handle, *arguments)

    power, limit = map(nvidia.watts, (say("PowerUsage"), say("EnforcedPowerLimit")))
    if power and limit and power > ABOVE_THE_LIMIT * limit:
        power = None
    return {
        "gpu_utilisation_percent": getattr(say("UtilizationRates"), "gpu", None),
        "gpu_memory_used_bytes": getattr(say("MemoryInfo"), "used", None),
        "gpu_power_watts": power,
        "gpu_clock_mhz": say("ClockInfo", 0),
        "gpu_temperature_celsius": say("Temperature", 0),
        "gpu_throttle_bits": nvidia.clocks_event_reasons(nvml, handle),
    }
