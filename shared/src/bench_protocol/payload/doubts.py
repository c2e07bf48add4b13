"""Doubts (warnings) about a measurement, derived from its figures and stored with it;
:mod:`.doubt_text` puts them into words. Codes are an open list on the wire; the known ones are in
:data:`Code`. A doubt never drops a result: it tells the reader how reliable the figure is.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from statistics import median, quantiles
from typing import Literal

from .figures import relative_spread
from .readings import Conditions, Telemetry
from .result import Blocks, Warn

Code = Literal[
    "few_blocks",
    "outliers",
    "drift",
    "slow_first_blocks",
    "unsteady",
    "throttled",
    "thermal_pressure",
    "cpu_throttled",
    "other_load",
    "not_idle",
    "hot",
    "on_battery",
    "low_power_mode",
    "slept",
    "clock_set",
]

# Doubts that something other than the cell slowed the measurement: other programs, or heat. Blocks
# that are few or unsteady are no disturbance by themselves. A state before the start (hot, on
# battery) is one only where it lasts, and then a sensor reports it.
DISTURBANCES: frozenset[str] = frozenset(
    {"other_load", "not_idle", "throttled", "thermal_pressure", "cpu_throttled"}
)
ENOUGH_BLOCKS = 10
ENOUGH_FOR_QUARTILES = 4
UNSTEADY_SPREAD = 0.2
# Tukey (1977) calls a value "far out" beyond three interquartile ranges from the quartiles. Blocks
# of a steady machine can be so close together that a harmless one is, hence the least share.
FAR_OUT = 3.0
LEAST_SHARE = 0.1
MANY_OUTLIERS = 0.05
LEAST_DRIFT = 0.05
# Two-sided 1 % of the normal distribution.
TREND_Z = 2.58
# NVML's clock event reasons that mean heat or power, not idleness or a chosen clock: software power
# cap, hardware slowdown, software thermal, hardware thermal, hardware power brake.
THROTTLE_BITS = 0x04 | 0x08 | 0x20 | 0x40 | 0x80
# The subset that only time or a fan fixes: hardware slowdown, both of heat, the power brake.
THROTTLED_BY_HEAT = 0x08 | 0x20 | 0x40 | 0x80
OFTEN_THROTTLED = 0.1
OTHER_LOAD_SHARE = 0.1
BUSY_PERCENT = 10.0
# The two clocks are read one after the other, and network time adjusts the wall clock constantly.
LEAST_JUMP_SECONDS = 1.0


def disturbances(warnings: Iterable[Warn]) -> list[Warn]:
    """The warnings that say that other programs or heat slowed the measurement.

    A GPU that was held at its power limit alone was not disturbed: so it runs under this load.
    """
    return [warn for warn in warnings if warn.code in DISTURBANCES and not _power_limit(warn)]


def _power_limit(warn: Warn) -> bool:
    bits = warn.figures.get("reason_bits") if warn.code == "throttled" else None
    return isinstance(bits, int | float) and not int(bits) & THROTTLED_BY_HEAT


def of_blocks(blocks: Blocks) -> list[Warn]:
    durations = blocks.durations_ns
    warnings = list(_few(durations))
    if len(durations) >= ENOUGH_FOR_QUARTILES:
        warnings += _unsteady(durations)
    if len(durations) >= ENOUGH_BLOCKS:
        warnings += _outliers(durations)
        warnings += list(_drift(durations)) or list(_slow_first(durations))
    return warnings


def of_telemetry(telemetry: Telemetry) -> list[Warn]:
    """Doubts from the sensors: a device slowed down by heat or by its power limit."""
    return [*_gpu_throttled(telemetry), *_thermal_pressure(telemetry), *_cpu_throttled(telemetry)]


def of_conditions(before: Conditions) -> list[Warn]:
    warnings = list(_not_idle(before))
    if before.thermal_pressure not in (None, "nominal"):
        warnings.append(Warn(code="hot", figures={"thermal_pressure": before.thermal_pressure}))
    if before.on_battery:
        warnings.append(_warn("on_battery"))
    if before.low_power_mode:
        warnings.append(_warn("low_power_mode"))
    return warnings


def of_clocks(slept_seconds: float, set_by_seconds: float) -> list[Warn]:
    """Doubts from the clocks: the machine slept, or its wall clock was set, during the repeat."""
    jumps: dict[Code, float] = {"slept": slept_seconds, "clock_set": set_by_seconds}
    return [
        _warn(code, seconds=round(seconds, 1))
        for code, seconds in jumps.items()
        if abs(seconds) > LEAST_JUMP_SECONDS
    ]


def of_other_load(other_cores: float, cores: int) -> list[Warn]:
    """A doubt if other programs used more than a tenth of the processor."""
    if other_cores < OTHER_LOAD_SHARE * cores:
        return []
    return [_warn("other_load", busy_cores=round(other_cores, 2), cores=cores)]


def _warn(code: Code, **figures: float) -> Warn:
    return Warn(code=code, figures={name: float(value) for name, value in figures.items()})


def _few(durations: Sequence[int]) -> Iterator[Warn]:
    if len(durations) < ENOUGH_BLOCKS:
        yield _warn("few_blocks", blocks=len(durations))


def _unsteady(durations: Sequence[int]) -> Iterator[Warn]:
    spread = relative_spread(durations)
    if spread > UNSTEADY_SPREAD:
        yield _warn("unsteady", spread=round(spread, 3))


def _outliers(durations: Sequence[int]) -> Iterator[Warn]:
    lower, middle, upper = quantiles(durations, n=4, method="inclusive")
    reach = max(FAR_OUT * (upper - lower), LEAST_SHARE * middle)
    far = [time for time in durations if not lower - reach <= time <= upper + reach]
    if len(far) > MANY_OUTLIERS * len(durations):
        worst = max(far, key=lambda time: abs(math.log(time / middle)))
        yield _warn(
            "outliers",
            outliers=len(far),
            blocks=len(durations),
            worst_over_median=round(worst / middle, 3),
        )


def _drift(durations: Sequence[int]) -> Iterator[Warn]:
    """The last third compared with the first, if ranks rise or fall with time (Daniels 1950)."""
    import numpy as np  # here: the server reads only the constants of this module

    ranks = np.argsort(np.argsort(durations, kind="stable"))
    correlation = float(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1])
    third = len(durations) // 3
    change = median(durations[-third:]) / median(durations[:third]) - 1
    trend = abs(correlation) * math.sqrt(len(durations) - 1) > TREND_Z
    if trend and abs(change) > LEAST_DRIFT:
        yield _warn("drift", change=round(change, 3))


def _gpu_throttled(telemetry: Telemetry) -> Iterator[Warn]:
    reasons = [int(reason) for reason in _values_of(telemetry, "gpu_throttle_bits")]
    slowed = [reason & THROTTLE_BITS for reason in reasons if reason & THROTTLE_BITS]
    if reasons and len(slowed) / len(reasons) >= OFTEN_THROTTLED:
        share = round(len(slowed) / len(reasons), 3)
        bits = float(reduce(or_, slowed))
        yield _warn("throttled", share_of_samples=share, reason_bits=bits)


def _thermal_pressure(telemetry: Telemetry) -> Iterator[Warn]:
    """macOS' level, 0 nominal, 1 moderate, 2 heavy and worse."""
    levels = _values_of(telemetry, "thermal_pressure_level")
    raised = [level for level in levels if level > 0]
    if levels and len(raised) / len(levels) >= OFTEN_THROTTLED:
        share = round(len(raised) / len(levels), 3)
        yield _warn("thermal_pressure", share_of_samples=share, worst_level=max(raised))


def _cpu_throttled(telemetry: Telemetry) -> Iterator[Warn]:
    counts = _values_of(telemetry, "cpu_throttle_count")
    if counts and counts[-1] > counts[0]:
        yield _warn("cpu_throttled", times=counts[-1] - counts[0])


def _not_idle(before: Conditions) -> Iterator[Warn]:
    figures = {
        "cpu_percent": before.cpu_utilisation_percent,
        "gpu_percent": before.gpu_utilisation_percent,
        "gpu_processes": before.gpu_processes,
    }
    above = {"cpu_percent": BUSY_PERCENT, "gpu_percent": BUSY_PERCENT, "gpu_processes": 0}
    busy = {name: value for name, value in figures.items() if (value or 0) > above[name]}
    if busy:
        yield _warn("not_idle", **{name: float(value or 0) for name, value in busy.items()})


def _values_of(telemetry: Telemetry, sensor: str) -> list[float]:
    return [value for value in telemetry.columns.get(sensor, ()) if value is not None]


def _slow_first(durations: Sequence[int]) -> Iterator[Warn]:
    """The first block far slower than the others: the warm-up was too short."""
    first, rest = durations[0], durations[1:]
    lower, middle, upper = quantiles(rest, n=4, method="inclusive")
    if first > upper + max(FAR_OUT * (upper - lower), LEAST_SHARE * middle):
        yield _warn("slow_first_blocks", first_over_median=round(first / middle, 3))
