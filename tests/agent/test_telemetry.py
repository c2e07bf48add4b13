"""Telemetry and background load: what sensors say, and whose processor time it is."""

import logging
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from bench_agent.run import telemetry
from bench_agent.run.idle_gate import look
from bench_agent.run.monitor import ProcessorTime, busy_cores, read_used
from bench_agent.run.telemetry import Reading, Sampler
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.readings import possible_only


def sampled(monkeypatch: pytest.MonkeyPatch, samples: int = 3) -> list[Reading]:
    readings: list[Reading] = []
    sampler = Sampler(Device(kind="cpu"), lambda: len(readings), readings.append)
    monkeypatch.setattr(sampler._ended, "wait", lambda _: len(readings) >= samples)
    with sampler:
        pass
    assert len(sampler.telemetry().at_ns) == samples
    return readings


def refuse(*_: Any, **__: Any) -> Any:
    raise OSError("not in this container")


def refuse_index(*_: Any, **__: Any) -> Any:
    raise IndexError("list index out of range")  # as psutil, where /proc/meminfo ends in zero bytes


@pytest.mark.parametrize("raised", [refuse, refuse_index])
@pytest.mark.parametrize(
    ("broken", "sensor"),
    [
        ("getloadavg", "load_average"),
        ("cpu_percent", "cpu_utilisation_percent"),
        ("virtual_memory", "memory_used_bytes"),
        ("sensors_temperatures", "cpu_temperature_celsius"),
    ],
)
def test_what_psutil_cannot_read_is_left_out_alone(
    monkeypatch: pytest.MonkeyPatch, broken: str, sensor: str, raised: Any
) -> None:
    monkeypatch.setattr(psutil, broken, raised, raising=False)
    for reading in sampled(monkeypatch):
        assert reading[sensor] is None
        assert sum(value is not None for value in reading.values()) >= 2
    look(Device(kind="cpu"), "Linux")


def test_a_sensor_that_raises_is_said_once_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(telemetry, "read_host", refuse)
    monkeypatch.setattr(telemetry, "read_linux", lambda: {"cpu_temperature_celsius": 50.0})
    monkeypatch.setattr("platform.system", lambda: "Linux")
    with caplog.at_level(logging.WARNING):
        readings = sampled(monkeypatch)
    assert readings == [{"cpu_temperature_celsius": 50.0}] * 3
    assert [record.message for record in caplog.records] == [
        "sensors are no longer read: OSError: not in this container"
    ]


@pytest.mark.parametrize(
    ("sensor", "value", "kept"),
    [
        *[("gpu_power_watts", 3_700_000.0, None), ("gpu_power_watts", 0.0, None)],
        *[("gpu_clock_mhz", 0.0, None), ("gpu_power_watts", 700.0, 700.0)],
        *[("cpu_temperature_celsius", -273.15, None), ("gpu_utilisation_percent", 101.0, None)],
        *[("fan_rpm", -1.0, None), ("gpu_memory_used_bytes", 2.0**60, None)],
        *[("gpu_throttle_bits", 4.0, 4.0), ("load_average", 0.0, 0.0)],
        *[("gpu_temperature_celsius", 0, None), ("gpu_temperature_celsius", 255, None)],
        *[("gpu_temperature_celsius", 84, 84.0), ("cpu_utilisation_percent", -1.0, None)],
        *[("gpu_utilisation_percent", 2**32 - 1, None), ("gpu_clock_mhz", 2**32 - 1, None)],
        *[("gpu_memory_used_bytes", 2**64 - 1, None), ("load_average", float("nan"), None)],
        *[("gpu_utilisation_percent", "7", None), ("gpu_throttle_bits", True, None)],
    ],
)
def test_an_impossible_value_is_none(sensor: str, value: Any, kept: float | None) -> None:
    assert possible_only({sensor: value}) == {sensor: kept}


@pytest.mark.parametrize(
    ("limit", "power", "kept"),
    [
        (130_000, 120_000, 120.0),
        (130_000, 200_000, 200.0),  # for a moment
        (130_000, 2_900_000, None),
        *((130_000, odd, None) for odd in (0, -5, "120000", float("nan"), None)),
        # A limit that is none bounds nothing.
        *((odd, 120_000, 120.0) for odd in (0, -1, 2**32 - 1, "x", None)),
    ],
)
def test_a_power_far_above_the_limit_of_the_gpu_is_none(limit: Any, power: Any, kept: Any) -> None:
    library = SimpleNamespace(
        nvmlDeviceGetPowerUsage=lambda _: power,
        nvmlDeviceGetEnforcedPowerLimit=lambda _: limit,
        nvmlDeviceGetUtilizationRates=lambda _: SimpleNamespace(gpu=None),
        nvmlDeviceGetMemoryInfo=lambda _: "odd",
    )
    reading = telemetry.read_nvidia(library, None)
    assert reading.pop("gpu_power_watts") == kept
    assert set(possible_only(reading).values()) == {None}


@pytest.mark.parametrize(
    ("everyone", "ours", "cores"),
    [(516.0, 41.0, 0.5), (505.0, 36.0, 0.0)],  # counters that lag give no negative load
)
def test_others_are_everyone_but_us(everyone: float, ours: float, cores: float) -> None:
    began = ProcessorTime(10.0, 500.0, 30.0)
    assert busy_cores(began, ProcessorTime(20.0, everyone, ours)) == cores
    assert busy_cores(began, ProcessorTime(20.0, None, ours)) is None


def test_a_child_that_was_waited_for_is_ours() -> None:
    before = read_used()
    spin = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)
    after = read_used()
    assert after.ours - before.ours >= 0.3
    tick = 2 / os.sysconf("SC_CLK_TCK")
    assert (after.everyone or 0) - (before.everyone or 0) >= 0.3 - tick
