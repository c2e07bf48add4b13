"""Memory fit: the machine's memory, a GPU's own, and a plan without cells that cannot fit."""

import pytest
from tests.fakes.results import make_cell, make_machine
from tests.fakes.workloads import TINY, cell_of

from bench_agent.base.messages import FoundDevice, Probe
from bench_agent.machine import MachineFacts
from bench_agent.plan.memory_fit import (
    FreeMemory,
    MemoryNeed,
    free_memory_of,
    need_of,
    training_memory,
)
from bench_agent.plan.plan import Selection, make_plan
from bench_agent.plan.presets import PRESETS
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.machine import Gpu

GB = 10**9
TRAINING = training_memory(TINY, 16)


def test_on_one_memory_everything_counts_together() -> None:
    need = need_of(cell_of(TINY, "mlx"), TINY)
    assert need.device_bytes == need.host_bytes
    assert need.host_bytes == 350_000_000 + TRAINING.samples + TRAINING.on_device


def test_a_gpu_with_memory_of_its_own_holds_the_training() -> None:
    cell = cell_of(TINY, "torch").model_copy(update={"device": Device(kind="cuda", index=1)})
    assert need_of(cell, TINY) == MemoryNeed(TRAINING.on_device, 500_000_000 + TRAINING.samples)
    small = FreeMemory(host_bytes=64 * GB, gpu_bytes={0: 80 * GB, 1: TRAINING.on_device - 1})
    assert "the GPU has" in (small.why_not(cell, TINY) or "")
    assert FreeMemory(64 * GB, {1: TRAINING.on_device}).why_not(cell, TINY) is None
    assert "this machine has" in (FreeMemory(10**8, {1: 80 * GB}).why_not(cell, TINY) or "")


@pytest.mark.parametrize("free_memory", [FreeMemory(), FreeMemory(None, {0: None}), FreeMemory(0)])
def test_where_the_system_does_not_tell_everything_is_tried(free_memory: FreeMemory) -> None:
    assert free_memory.why_not(cell_of(TINY), TINY) is None


def test_the_free_memory_of_a_machine() -> None:
    machine = make_machine()
    gpus = (
        Gpu(kind="cuda", index=0, name="NVIDIA H200", memory_bytes=150 * GB),
        Gpu(kind="metal", index=0, name="Apple M2", memory_bytes=16 * GB),
    )
    facts = MachineFacts(
        cpu=machine.cpu, os=machine.os, gpus=gpus, model=None, memory_bytes=32 * GB
    )
    assert free_memory_of(facts) == FreeMemory(32 * GB, {0: 150 * GB})


def test_a_plan_leaves_out_what_cannot_fit() -> None:
    probes = {
        "mlx": Probe(devices=(FoundDevice(kind="cpu", index=0, name="CPU"),), environment=None)
    }
    workload = workload_named("mnist-cnn")
    selection = Selection(
        workloads=("mnist-cnn",), frameworks=("mlx",), batch_sizes=(64, 8192), recipes=("naive",)
    )
    between = need_of(make_cell(framework="mlx", batch_size=8192), workload).host_bytes - 1
    plan = make_plan(PRESETS["smoke"], selection, probes, free_memory=FreeMemory(between))
    assert [planned.cell.batch_size for planned in plan.cells] == [64]
    (left_out,) = plan.excluded
    assert "batch 8192" in left_out.what
    assert left_out.reason.startswith("needs at least ")
