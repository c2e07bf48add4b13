"""Readings of the agent's parent process beside a repeat: conditions, telemetry, energy."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from ..base.units import (
    Bytes,
    Count,
    DurationNs,
    EnergyMj,
    Finite,
    OffsetNs,
    Slug,
    Text,
    Wire,
)

EnergySource = Literal["nvml", "rapl", "ioreport", "none"]
# Sensors are an open list, each with its unit as the end of its name (docs/protocol.md lists those
# in use): a new one needs no new version.
Sensor = Annotated[
    str,
    StringConstraints(
        pattern=r"^[a-z][a-z0-9_]{0,40}_"
        r"(percent|mhz|celsius|watts|bytes|level|bits|average|rpm|count)$"
    ),
]
# An envelope must stay below 2 MiB: with more samples, :func:`thinned` keeps every n-th.
MOST_SAMPLES = 4_000
MOST_SENSORS = 24
Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


# What a sensor can read, by its unit; a value outside is no reading. Zero watts, megahertz and
# degrees are those of a sensor that stands still or is not connected.
POSSIBLE = {
    "percent": (0.0, 100.0),
    "mhz": (1.0, 20_000.0),
    "celsius": (0.5, 125.0),
    "watts": (1e-3, 3_000.0),
    "bytes": (0.0, 2.0**50),
    "average": (0.0, 1e6),
    "rpm": (0.0, 1e5),
}


def possible(unit: str, value: object) -> float | None:
    """The value, if it can be a reading in this unit, else None. One in an unknown unit can."""
    low, high = POSSIBLE.get(unit, (-math.inf, math.inf))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if low <= value <= high and math.isfinite(value) else None


def possible_only(reading: Mapping[Sensor, object]) -> dict[Sensor, float | None]:
    """The reading, with None for impossible values."""
    return {sensor: possible(sensor.rpartition("_")[2], value) for sensor, value in reading.items()}


class Conditions(Wire):
    """State of the machine before the repeat: load, heat, power; None for unknown values."""

    waited_ns: OffsetNs | None = None
    load_average: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    cpu_utilisation_percent: Percent | None = None
    gpu_utilisation_percent: Percent | None = None
    gpu_processes: Count | None = None
    gpu_memory_used_bytes: Bytes | None = None
    available_memory_bytes: Bytes | None = None
    on_battery: bool | None = None
    low_power_mode: bool | None = None
    thermal_pressure: Slug | None = None
    cpu_governor: Slug | None = None


class Telemetry(Wire):
    """Sensors sampled from the parent process, about once a second; one column a sensor."""

    at_ns: tuple[OffsetNs, ...] = Field(default=(), max_length=MOST_SAMPLES)
    columns: dict[Sensor, tuple[Finite | None, ...]] = Field(default={}, max_length=MOST_SENSORS)

    @model_validator(mode="after")
    def _same_length(self) -> "Telemetry":
        for sensor, column in self.columns.items():
            if len(column) != len(self.at_ns):
                raise ValueError(
                    f"column {sensor} has {len(column)} values, at_ns has {len(self.at_ns)}"
                )
        return self


def thinned(at_ns: Sequence[int], columns: Mapping[Sensor, Sequence[float | None]]) -> Telemetry:
    """Telemetry of any length: every n-th sample, n the least that keeps ``MOST_SAMPLES``."""
    step = max(1, -(-len(at_ns) // MOST_SAMPLES))
    return Telemetry(
        at_ns=tuple(at_ns[::step]),
        columns={sensor: tuple(column[::step]) for sensor, column in columns.items()},
    )


class Energy(Wire):
    """Energy over a window of the timed part, and its source.

    ``scope``: what the counter counts (``gpu``, ``cpu_package``, ``soc``): figures of different
    scopes do not compare.
    """

    source: EnergySource
    reason: Text | None = None
    scope: Slug | None = None
    energy_mj: EnergyMj | None = None
    window_ns: DurationNs | None = None

    @model_validator(mode="after")
    def _number_with_its_origin(self) -> "Energy":
        if self.energy_mj is None:
            return self
        if self.source == "none" or self.window_ns is None:
            raise ValueError("energy_mj needs a source other than 'none', and window_ns")
        return self
