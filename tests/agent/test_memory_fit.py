"""Memory of a training, counted by hand for small networks, and whether a machine has it."""

import pytest
from tests.fakes.results import make_cell, make_machine
from tests.fakes.workloads import TINY, cell_of, variant

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
from bench_protocol.catalogue.layers import LSTM, Conv2D, Dense, Flatten, MaxPool2D, Residual
from bench_protocol.catalogue.matrix import Device
from bench_protocol.catalogue.workloads import SGD, DataSet, RMSprop, Workload
from bench_protocol.payload.machine import Gpu

# TINY: 8x8x1 pictures, Flatten, D16, D10, Adam; 256 + 64 samples.
WEIGHTS = 64 * 16 + 16 + 16 * 10 + 10


def test_by_hand() -> None:
    memory = training_memory(TINY, 32)
    assert memory.weights == memory.gradients == 4 * WEIGHTS
    assert memory.optimizer_state == 2 * 4 * WEIGHTS
    # The picture, what the three layers give, and the gradient of the largest of them.
    assert memory.activations == 4 * 32 * (64 + (64 + 16 + 10) + 64)
    assert memory.samples == 320 * (64 + 4)
    assert memory.on_device == 4 * 4 * WEIGHTS + memory.activations


def test_what_the_optimiser_keeps() -> None:
    for optimizer, slots in ((RMSprop(), 1), (SGD(), 1)):
        memory = training_memory(variant(TINY, optimizer=optimizer), 32)
        assert memory.optimizer_state == slots * 4 * WEIGHTS


def test_mixed_precision_halves_the_activations_only() -> None:
    full, mixed = (training_memory(TINY, 32, p) for p in ("float32", "mixed_float16"))
    assert mixed.activations * 2 == full.activations
    assert mixed.weights == full.weights


def test_frozen_layers_have_no_gradients_and_keep_nothing() -> None:
    pictures = DataSet(
        name="x", sample_shape=(16, 16, 3), classes=10, train_samples=8, test_samples=8
    )
    convolutions = tuple(Conv2D(filters=8, kernel=3, padding="same") for _ in range(4))
    head = (MaxPool2D(size=16, stride=16), Flatten(), Dense(units=10, activation="linear"))
    whole = Workload(
        name="x",
        data_set=pictures,
        layers=(*convolutions, *head),
        optimizer=SGD(),
        batch_size=1,
        epochs=1,
    )
    frozen = variant(whole, frozen_layers=4)
    assert training_memory(frozen, 1).gradients == 4 * (8 * 10 + 10)
    assert training_memory(frozen, 1).weights == training_memory(whole, 1).weights
    convolution = 16 * 16 * 8
    assert training_memory(frozen, 1).activations == 4 * (convolution + (8 + 8 + 10) + convolution)
    assert training_memory(whole, 1).activations == 4 * (
        16 * 16 * 3 + 4 * convolution + 8 + 8 + 10 + convolution
    )


def test_an_lstm_keeps_every_step_and_a_residual_block_every_layer() -> None:
    rows = TINY.data_set.model_copy(update={"sample_shape": (8, 8)})
    lstm = variant(TINY, data_set=rows, layers=(LSTM(units=4), Dense(units=10)))
    assert training_memory(lstm, 1).activations == 4 * (64 + (8 * 4 * 6 + 10) + 64)
    inside = Conv2D(filters=1, kernel=3, padding="same")
    block = variant(TINY, layers=(Residual(main=(inside, inside)), Flatten(), Dense(units=10)))
    assert training_memory(block, 1).activations == 4 * (64 + (2 * 64 + 64 + 10) + 64)


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
