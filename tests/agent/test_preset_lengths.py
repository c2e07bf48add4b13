"""Every preset times a fast GPU for long enough: ten blocks, an energy window, samples of sensors.

The device is a fake one of 50 microseconds a step, with the project's own catalogue.
"""

from itertools import repeat

import pytest
from tests.fakes.engine import FakeClock, FakeSession

from bench_agent import engines
from bench_agent.base.messages import FoundDevice, Probe
from bench_agent.plan.plan import PlannedCell, Selection, make_plan
from bench_agent.plan.presets import LIKE, PRESETS, Preset
from bench_agent.run.timed_part import SHORTEST_SECONDS
from bench_agent.worker.stopwatch import measure
from bench_protocol.payload.doubts import ENOUGH_BLOCKS, of_blocks
from bench_protocol.payload.result import Blocks

STEP_NS = 50_000
KINDS = ("metal", "cuda", "cpu")
# Epochs of few and of many steps; the large workloads differ only in their number.
WORKLOADS = ("mnist-cnn", "fashion-mlp", "cifar100-vgg16")


def cells(preset: Preset, kind: str) -> list[PlannedCell]:
    device = FoundDevice(kind=kind, index=0, name="fast")
    framework = "tensorflow"
    probes = {framework: Probe(devices=(device,), environment=None)}
    absent = dict.fromkeys(engines.names(), Probe(devices=(), environment=None, problem="absent"))
    selection = Selection(frameworks=(framework,), workloads=() if preset.workloads else WORKLOADS)
    plan = make_plan(preset, selection, absent | probes)
    by_timing = {
        (planned.cell.workload, planned.cell.batch_size, planned.timing): planned
        for _, planned in plan
    }
    return list(by_timing.values())


def timed(planned: PlannedCell) -> Blocks:
    clock = FakeClock()
    session = FakeSession(clock, repeat(STEP_NS))
    steps = planned.workload.steps_per_epoch(planned.cell.batch_size)
    return measure(session, planned.timing, steps, clock=clock)


@pytest.fixture(autouse=True)
def metal_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines.engine_named("tensorflow"), "why_not", lambda *_: None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_times_enough_blocks_and_seconds(name: str, kind: str) -> None:
    planned_cells = cells(PRESETS[name], kind)
    assert planned_cells
    for planned in planned_cells:
        blocks = timed(planned)
        assert len(blocks.durations_ns) >= ENOUGH_BLOCKS, planned.cell
        assert of_blocks(blocks) == []
        accuracy_pass = planned.timing.epochs == planned.workload.epochs
        if kind != "cpu" and not accuracy_pass:
            least = 30 if name in ("standard", "full") else max(12, SHORTEST_SECONDS)
            assert blocks.total_ns >= least * 1e9, planned.cell
        if kind == "cpu" and name in ("standard", "full") and not accuracy_pass:
            assert blocks.total_ns >= SHORTEST_SECONDS * 1e9, planned.cell


@pytest.mark.parametrize("name", LIKE)
def test_a_published_number_of_epochs_is_cut_into_enough_blocks(name: str) -> None:
    for planned in cells(LIKE[name], "cuda"):
        blocks = timed(planned)
        assert len(blocks.durations_ns) >= ENOUGH_BLOCKS, planned.cell
        steps = planned.workload.steps_per_epoch(planned.cell.batch_size)
        assert blocks.steps == planned.workload.epochs * steps
