"""Telemetry and background load: what sensors say, and whose processor time it is."""

import logging
import os
import subprocess
import sys
from typing import Any

import psutil
import pytest

from bench_agent.run import telemetry
from bench_agent.run.monitor import ProcessorTime, busy_cores, read_used
from bench_agent.run.telemetry import Reading, Sampler
from bench_protocol.catalogue.matrix import Device


def sampled(monkeypatch: pytest.MonkeyPatch, samples: int = 3) -> list[Reading]:
    """Readings of a sampler that does not wait between them."""
    readings: list[Reading] = []
    sampler = Sampler(Device(kind="cpu"), lambda: len(readings), readings.append)
    monkeypatch.setattr(sampler._ended, "wait", lambda _: len(readings) >= samples)
    with sampler:
        pass
    assert len(sampler.telemetry().at_ns) == samples
    return readings


def refuse(*_: Any, **__: Any) -> Any:
    raise OSError("not in this container")


def test_a_load_that_cannot_be_read_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "getloadavg", refuse)
    for reading in sampled(monkeypatch):
        assert reading["load_average"] is None
        assert reading["memory_used_bytes"]


@pytest.mark.parametrize("broken", ["cpu_percent", "virtual_memory"])
def test_a_sensor_that_raises_is_said_once_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    monkeypatch.setattr(psutil, broken, refuse)
    monkeypatch.setattr(telemetry, "read_linux", lambda: {"cpu_temperature_celsius": 50.0})
    monkeypatch.setattr("platform.system", lambda: "Linux")
    with caplog.at_level(logging.WARNING):
        readings = sampled(monkeypatch)
    assert readings == [{"cpu_temperature_celsius": 50.0}] * 3
    assert [record.message for record in caplog.records] == [
        "sensors are no longer read: OSError: not in this container"
    ]


@pytest.mark.parametrize(
    ("everyone", "ours", "cores"),
    [(516.0, 41.0, 0.5), (505.0, 36.0, 0.0)],  # counters that lag give no negative load
)
def test_others_are_everyone_but_us(everyone: float, ours: float, cores: float) -> None:
    began = ProcessorTime(10.0, 500.0, 30.0)
    assert busy_cores(began, ProcessorTime(20.0, everyone, ours)) == cores


def test_a_child_that_was_waited_for_is_ours() -> None:
    before = read_used()
    spin = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)
    after = read_used()
    assert after.ours - before.ours >= 0.3
    tick = 2 / os.sysconf("SC_CLK_TCK")
    assert after.everyone - before.everyone >= 0.3 - tick
