"""Energy: each source, the window of the timed part, and the reason if there is none."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tests.fakes.nvml import FakeNvml, NVMLError, h200
from tests.fakes.results import make_cell, make_measurement

from bench_agent.base.messages import BlockDone, PhaseBegan
from bench_agent.machine import cuda
from bench_agent.run.energy.ioreport import IoReport
from bench_agent.run.energy.meter import Counters, MeterProblem
from bench_agent.run.energy.nvml import Nvml
from bench_agent.run.energy.rapl import Rapl
from bench_agent.run.timed_part import TimedPart, meter_for
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.figures import energy_per_sample_mj
from bench_protocol.payload.readings import EnergySource

CPU = Device(kind="cpu")
SECOND = 1_000_000_000


def zone(root: Path, place: str, name: str, energy_uj: int, most_uj: int = 262_143_328_850) -> Path:
    folder = root / "sys/class/powercap" / place
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "energy_uj").write_text(f"{energy_uj}\n")
    (folder / "max_energy_range_uj").write_text(f"{most_uj}\n")
    return folder


@pytest.fixture
def two_sockets(tmp_path: Path) -> Path:
    for number in (0, 1):
        zone(tmp_path, f"intel-rapl:{number}", f"package-{number}", 1_000_000 * number)
        zone(tmp_path, f"intel-rapl:{number}:0", "core", 7)
        zone(tmp_path, f"intel-rapl:{number}:1", "dram", 500_000)
    zone(tmp_path, "intel-rapl:2", "psys", 9)
    return tmp_path


def test_rapl_adds_packages_and_leaves_their_parts_out(two_sockets: Path) -> None:
    meter = Rapl(two_sockets)
    assert meter.read() == {"cpu_package": 0, "dram": 0}
    zone(two_sockets, "intel-rapl:0", "package-0", 30_000_000)
    zone(two_sockets, "intel-rapl:1", "package-1", 13_000_000)
    zone(two_sockets, "intel-rapl:1:1", "dram", 2_500_000)
    assert meter.read() == {"cpu_package": 42_000, "dram": 2_000}


def test_a_rapl_counter_that_starts_again_goes_on(two_sockets: Path) -> None:
    near_the_end = 262_143_000_000
    zone(two_sockets, "intel-rapl:0", "package-0", near_the_end)
    meter = Rapl(two_sockets)
    zone(two_sockets, "intel-rapl:0", "package-0", 671_150)
    assert meter.read()["cpu_package"] == 1_000  # 328,850 µJ to the end, then 671,150
    zone(two_sockets, "intel-rapl:0", "package-0", 1_671_150)
    assert meter.read()["cpu_package"] == 2_000


def test_rapl_that_may_not_be_read_says_why(
    two_sockets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: Path, *arguments: object) -> str:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_text", refused)  # the tests may run as an administrator
    with pytest.raises(MeterProblem, match="administrators only"):
        Rapl(two_sockets)


def test_no_rapl(tmp_path: Path) -> None:
    with pytest.raises(MeterProblem, match="no RAPL"):
        meter_for(CPU, "Linux", tmp_path)
    zone(tmp_path, "intel-rapl:0", "package-0", 0)
    (tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj").write_text("odd")
    with pytest.raises(MeterProblem, match="not a number"):
        meter_for(CPU, "Linux", tmp_path)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml(
        h200(0, GetTotalEnergyConsumption=5_000),
        h200(1),
        h200(2, GetTotalEnergyConsumption=5_000, GetMigMode=(1, 1)),
    )
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.setattr(cuda, "devices", lambda environ: None)
    return fake


def test_nvml(gpus: FakeNvml) -> None:
    meter = meter_for(Device(kind="cuda"), "Linux")
    assert (meter.source, meter.scope, meter.read()) == ("nvml", "gpu", {"gpu": 5_000})
    gpus.gpus[0].answers["GetTotalEnergyConsumption"] = 6_250
    assert meter.read() == {"gpu": 6_250}
    gpus.gpus[0].answers["GetTotalEnergyConsumption"] = NVMLError("GPU is lost")
    with pytest.raises(MeterProblem):
        meter.read()
    meter.close()


@pytest.mark.parametrize(
    ("index", "reason"), [(1, "no energy counter"), (2, "whole GPU"), (3, "lists no GPU 3")]
)
def test_a_gpu_without_energy_says_why(gpus: FakeNvml, index: int, reason: str) -> None:
    with pytest.raises(MeterProblem, match=reason):
        Nvml(index)


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(broken="Driver Not Loaded"))
    with pytest.raises(MeterProblem, match="NVML does not start: Driver Not Loaded"):
        Nvml(0)


def apple_library(monkeypatch: pytest.MonkeyPatch, *readings: object) -> None:
    left = list(readings)

    class AppleEnergyMonitor:
        def get_cumulative_energy(self) -> object:
            reading = left.pop(0)
            if isinstance(reading, Exception):
                raise reading
            return reading

    module = ModuleType("zeus_apple_silicon")
    module.AppleEnergyMonitor = AppleEnergyMonitor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "zeus_apple_silicon", module)


def test_ioreport_sums_what_does_not_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    chip = SimpleNamespace(
        cpu_total_mj=100, performance_cores_mj=[40, 30], gpu_mj=50, dram_mj=7, ane_mj=None
    )
    apple_library(monkeypatch, chip, chip)
    meter = meter_for(Device(kind="metal"), "Darwin")
    assert meter.source == "ioreport"
    assert meter.read() == {"soc": 157, "cpu": 100, "gpu": 50, "dram": 7}


@pytest.mark.parametrize(
    "reading",
    [
        SimpleNamespace(),
        SimpleNamespace(gpu_mj=float("nan")),
        RuntimeError("no channel"),
        ValueError("Unknown unit: kJ"),  # a C++ std::invalid_argument
    ],
)
def test_a_chip_that_tells_nothing_says_so(
    monkeypatch: pytest.MonkeyPatch, reading: object
) -> None:
    apple_library(monkeypatch, reading)
    with pytest.raises(MeterProblem):
        IoReport()


def test_a_library_that_does_not_start_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    apple_library(monkeypatch)

    def refuses() -> None:
        raise ValueError("Unknown unit: kJ")

    monkeypatch.setattr(sys.modules["zeus_apple_silicon"], "AppleEnergyMonitor", refuses)
    window = TimedPart(CPU, lambda: 0, lambda device: IoReport())
    assert window.energy().reason == "IOReport: Unknown unit: kJ"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (SimpleNamespace(cpu_total_mj=9, gpu_mj=9), SimpleNamespace(cpu_total_mj=9_000)),
        (SimpleNamespace(gpu_mj=9_000), SimpleNamespace(gpu_mj=5)),
    ],
)
def test_counters_that_change_give_no_figure(
    monkeypatch: pytest.MonkeyPatch, before: object, after: object
) -> None:
    apple_library(monkeypatch, before, before, after)
    now = iter((0, 20 * SECOND))
    window = TimedPart(CPU, lambda: next(now), lambda device: IoReport())
    window.heard(PhaseBegan(phase="timing"))
    window.heard(BlockDone(duration_ns=20 * SECOND, steps=9, share_done=1.0))
    assert window.energy().source == "none"


def test_without_the_library_the_reason_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zeus_apple_silicon", None)
    with pytest.raises(MeterProblem, match="zeus-apple-silicon is not installed"):
        meter_for(CPU, "Darwin")


class Ramp:
    source: EnergySource = "rapl"
    scope = "cpu_package"

    def __init__(self) -> None:
        self.now_ns = 0
        self.fails_after_ns: int | None = None
        self.watts = 40.0
        self.closed = 0

    def clock(self) -> int:
        return self.now_ns

    def read(self) -> Counters:
        if self.fails_after_ns is not None and self.now_ns > self.fails_after_ns:
            raise MeterProblem("gone")
        used_mj = int(self.now_ns * self.watts) // 1_000_000
        return {"cpu_package": used_mj, "dram": self.now_ns // 1_000_000}

    def close(self) -> None:
        self.closed += 1


def window(ramp: Ramp, blocks: int) -> TimedPart:
    window = TimedPart(CPU, ramp.clock, lambda device: ramp)
    window.heard(PhaseBegan(phase="warm_up"))
    ramp.now_ns += 5 * SECOND
    window.heard(PhaseBegan(phase="timing"))
    for _ in range(blocks):
        ramp.now_ns += SECOND
        window.heard(BlockDone(duration_ns=SECOND, steps=9, share_done=0.5))
    window.heard(PhaseBegan(phase="evaluate"))
    ramp.now_ns += 3 * SECOND
    return window


def test_the_window_is_the_timed_part() -> None:
    ramp = Ramp()
    energy = window(ramp, blocks=12).energy()
    assert (energy.source, energy.scope) == ("rapl", "cpu_package")
    assert (energy.energy_mj, energy.window_ns) == (12 * 40 * 1000, 12 * SECOND)
    assert ramp.closed


@pytest.mark.parametrize(
    ("changes", "blocks", "reason"),
    [
        ({}, 9, "the timed part took 9.0 s; energy needs 10 s or more"),
        ({"watts": 0.0}, 12, "its mean power is 0 W"),
        ({"watts": 0.2}, 12, "its mean power is 0.2 W"),
        ({"watts": 1e6}, 12, "its mean power is 1e+06 W"),
        ({"fails_after_ns": 8 * SECOND}, 12, "gone"),
    ],
)
def test_where_there_is_no_figure_there_is_a_reason(
    changes: dict[str, Any], blocks: int, reason: str
) -> None:
    ramp = Ramp()
    vars(ramp).update(changes)
    energy = window(ramp, blocks).energy()
    assert (energy.source, energy.energy_mj) == ("none", None)
    assert reason in str(energy.reason)


@pytest.mark.parametrize(
    "readings",
    [
        (5_000, 4_000, 3_000),
        (5_000_000, 0, 6_000_000),  # it began again, and passed its first value
        (5_000, 5_000, 5_000),
        (0, 0, 0),
        (5_000, NVMLError("GPU is lost"), 400_000),
        (5_000, NVMLError("Unknown Error"), NVMLError("Not Supported")),
    ],
)
def test_a_counter_that_stands_still_or_falls_gives_no_figure(
    gpus: FakeNvml, readings: tuple[Any, ...]
) -> None:
    now = iter(range(0, 60 * SECOND, 20 * SECOND))
    part = TimedPart(Device(kind="cuda"), lambda: next(now), meter_for)
    gpus.gpus[0].answers["GetTotalEnergyConsumption"], *later = readings
    part.heard(PhaseBegan(phase="timing"))
    for value in later:
        gpus.gpus[0].answers["GetTotalEnergyConsumption"] = value
        part.heard(BlockDone(duration_ns=20 * SECOND, steps=9, share_done=0.5))
    assert (part.energy().source, part.energy().energy_mj) == ("none", None)
    assert part.energy().reason


@pytest.mark.parametrize("most_uj", [262_143_328_850, 0])
def test_a_rapl_counter_that_is_reset_gives_no_figure(two_sockets: Path, most_uj: int) -> None:
    zone(two_sockets, "intel-rapl:0", "package-0", 90_000_000, most_uj)
    meter = Rapl(two_sockets)
    zone(two_sockets, "intel-rapl:0", "package-0", 1_000, most_uj)
    with pytest.raises(MeterProblem, match="fell far from its end"):
        meter.read()


def test_a_worker_that_times_nothing_gives_no_figure() -> None:
    assert TimedPart(CPU, lambda: 0, lambda device: Ramp()).energy().source == "none"


@pytest.mark.parametrize("late", [1, 0.9, 1.1])
def test_energy_per_sample_and_epoch(late: float) -> None:
    """The power of the window, which may be a little shorter or longer than the blocks."""
    cell, made = make_cell(), make_measurement(make_cell(), step_ns=1_000_000)
    energy = window(Ramp(), blocks=12).energy()
    assert energy.energy_mj is not None
    window_ns = round(made.blocks.total_ns / late)
    energy = energy.model_copy(update={"window_ns": window_ns})
    samples = made.blocks.steps * cell.batch_size / late
    per_sample = energy_per_sample_mj(made.model_copy(update={"energy": energy}), cell.batch_size)
    assert per_sample == pytest.approx(480_000 / samples)
    assert energy_per_sample_mj(made, cell.batch_size) is None
