"""Idle gate: load and heat before a repeat, and waiting until the machine is idle and cool."""

import signal
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from tests.fakes.nvml import FakeNvml, h200

from bench_agent.base.errors import UsageProblem
from bench_agent.machine import cuda, macos
from bench_agent.machine.apple import Accelerator
from bench_agent.run import idle_gate
from bench_agent.run.idle_gate import COOL, IDLE_AND_COOL, IdleGate, look
from bench_agent.run.interrupt import Stop, gentle_interrupt
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload import doubts
from bench_protocol.payload.readings import Conditions

QUIET = Conditions(cpu_utilisation_percent=2.0, thermal_pressure="nominal")
BUSY = Conditions(cpu_utilisation_percent=80.0)
HOT = Conditions(cpu_utilisation_percent=2.0, thermal_pressure="heavy")
ON_BATTERY = Conditions(on_battery=True, low_power_mode=True)


class Waiting:
    def __init__(self, *seen: Conditions) -> None:
        self.now = 100.0
        self.said: list[str] = []
        self._seen: Iterator[Conditions] = iter(seen)
        self._last = seen[-1]

    def look(self, device: Device) -> Conditions:
        self.now += 1.0  # looking takes a second
        return next(self._seen, self._last)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def wait(
        self, gone: tuple[str, ...], wait_seconds: float = 30, strict: bool = False
    ) -> Conditions:
        gate = IdleGate(wait_seconds, strict, self.look, lambda: self.now, self.sleep)
        return gate.wait(Device(kind="cpu"), gone, self.said.append, Stop())


def test_a_quiet_machine_is_not_waited_for() -> None:
    waiting = Waiting(QUIET)
    assert (waiting.wait(IDLE_AND_COOL).waited_ns, waiting.said) == (1_000_000_000, [])


def test_a_busy_machine_is_waited_for_until_it_is_idle() -> None:
    waiting = Waiting(BUSY, BUSY, HOT, QUIET)
    seen = waiting.wait(IDLE_AND_COOL, 60)
    assert seen.model_copy(update={"waited_ns": None}) == QUIET
    assert seen.waited_ns == 10_000_000_000  # four looks, three sleeps of two seconds
    assert waiting.said == ["the processor was 80 % busy before the start: waiting up to 1 min 0 s"]


def test_the_limit_ends_the_waiting() -> None:
    waiting = Waiting(BUSY)
    seen = waiting.wait(IDLE_AND_COOL, 7)
    assert seen.cpu_utilisation_percent == 80.0
    assert seen.waited_ns is not None
    assert 7e9 <= seen.waited_ns <= 9e9


def test_with_strict_what_is_left_stops_the_run() -> None:
    with pytest.raises(UsageProblem, match=r"80 % busy.*--strict"):
        Waiting(BUSY).wait(IDLE_AND_COOL, 3, strict=True)
    with pytest.raises(UsageProblem, match=r"battery.*low-power"):
        Waiting(ON_BATTERY).wait(IDLE_AND_COOL, strict=True)
    assert Waiting(BUSY, QUIET).wait(IDLE_AND_COOL, strict=True).waited_ns


def test_between_cells_only_heat_is_waited_for() -> None:
    assert Waiting(BUSY).wait(COOL).waited_ns == 1_000_000_000
    assert Waiting(HOT, QUIET).wait(COOL).waited_ns == 4_000_000_000


def test_a_battery_is_not_waited_for() -> None:
    assert Waiting(ON_BATTERY).wait(IDLE_AND_COOL).waited_ns == 1_000_000_000


def test_a_request_to_stop_ends_the_waiting() -> None:
    waiting = Waiting(BUSY)
    gate = IdleGate(60, True, waiting.look, lambda: waiting.now, waiting.sleep)
    with pytest.raises(UsageProblem):
        gate.wait(Device(kind="cpu"), IDLE_AND_COOL, waiting.said.append, Stop(requested=True))
    assert waiting.now == 101.0


def test_ctrl_c_says_that_it_ends_a_wait_or_a_repeat() -> None:
    waiting, said = Waiting(BUSY), list[str]()
    with gentle_interrupt(said.append) as stop:

        def sleep(seconds: float) -> None:
            signal.raise_signal(signal.SIGINT)

        gate = IdleGate(60, False, waiting.look, lambda: waiting.now, sleep)
        gate.wait(Device(kind="cpu"), IDLE_AND_COOL, said.append, stop)
        assert stop.requested
    assert "no longer waiting for an idle machine" in said[-1]
    with gentle_interrupt(said.append):
        signal.raise_signal(signal.SIGINT)
    assert "finishing this repeat" in said[-1]


def test_this_machine() -> None:
    seen = look(Device(kind="cpu"))
    assert seen.cpu_utilisation_percent is not None
    assert seen.available_memory_bytes
    assert seen.gpu_utilisation_percent is None


def test_an_nvidia_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = h200(
        0,
        GetUtilizationRates=SimpleNamespace(gpu=35, memory=1),
        GetComputeRunningProcesses=[object(), object()],
        GetTemperature=71,
        GetCurrentClocksEventReasons=0x20,
    )
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(gpu))
    monkeypatch.setattr(cuda, "devices", lambda environ: None)
    seen = look(Device(kind="cuda"))
    assert (seen.gpu_utilisation_percent, seen.gpu_processes) == (35, 2)
    assert seen.thermal_pressure == "throttled"
    gpu.answers |= {"GetCurrentClocksEventReasons": 0x4, "GetTemperature": "odd"}
    seen = look(Device(kind="cuda"))
    assert seen.thermal_pressure is None
    assert look(Device(kind="cuda", index=1)).gpu_processes is None


def test_an_apple_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(macos, "accelerators", lambda: (Accelerator("Apple M2", 10, 44),))
    monkeypatch.setattr(idle_gate.sensors, "thermal_pressure", lambda: "moderate")
    seen = look(Device(kind="metal"), "Darwin")
    assert (seen.gpu_utilisation_percent, seen.thermal_pressure) == (44, "moderate")


@pytest.mark.parametrize(
    ("busy", "recorded", "doubted"),
    [
        ([3], 3, False),
        ([30, 4], 4, False),  # drawing the screen, or the last worker's share
        ([30, 28, 5], 5, False),
        ([30, 31, 29], 29, True),  # other work
    ],
)
def test_a_mac_with_a_screen_is_idle_between_two_pictures(
    monkeypatch: pytest.MonkeyPatch, busy: list[int], recorded: int, doubted: bool
) -> None:
    readings = iter(busy)
    monkeypatch.setattr(idle_gate.sensors, "SAMPLE_SECONDS", 0.01)
    monkeypatch.setattr(
        macos, "accelerators", lambda: (Accelerator("Apple M4", 10, next(readings)),)
    )
    conditions = look(Device(kind="metal"), "Darwin")
    assert conditions.gpu_utilisation_percent == recorded
    cpu_apart = conditions.model_copy(update={"cpu_utilisation_percent": 0.0})
    assert ("not_idle" in {warning.code for warning in doubts.of_conditions(cpu_apart)}) == doubted
