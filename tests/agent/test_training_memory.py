"""Memory of a training, counted by hand for small networks."""

import pytest
from tests.fakes.workloads import TINY, variant

from bench_agent.plan.memory_fit import training_memory
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.layers import LSTM, Conv2D, Dense, Flatten, MaxPool2D, Residual
from bench_protocol.catalogue.workloads import SGD, DataSet, RMSprop, Workload

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


@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda workload: workload.name)
def test_every_workload_has_one(workload: Workload) -> None:
    small = training_memory(workload, workload.batch_size)
    large = training_memory(workload, 4 * workload.batch_size)
    assert small.weights == 4 * workload.parameter_count
    assert large.activations == 4 * small.activations
    assert large.weights == small.weights
