"""What sessions tell about their own training: weights, steps and masks."""

import numpy as np
import pytest
from tests.fakes.workloads import variant

from bench_agent import engines
from bench_agent.worker import witness
from bench_protocol import seeded
from bench_protocol.layers import (
    BatchNorm,
    Conv2D,
    Dense,
    Dropout,
    GlobalAveragePool2D,
    MaxPool2D,
    Residual,
)
from bench_protocol.witness import trained_tensors
from bench_protocol.workloads import SGD

from .conftest import Opener, tiny_data
from .test_contract import BATCH, PAIRS, WORKLOADS

every_pair = pytest.mark.parametrize(("framework", "recipe"), PAIRS)
SAME = Conv2D(filters=4, kernel=3, padding="same", activation="linear")
RESIDUAL = variant(
    WORKLOADS["mnist-cnn"],
    name="residual",
    layers=(
        Conv2D(filters=6, kernel=3, padding="valid"),
        MaxPool2D(),
        Residual(
            main=(SAME, BatchNorm(), SAME, BatchNorm(gamma=0.5, activation="linear")),
            shortcut=(SAME.model_copy(update={"kernel": 1}), BatchNorm(activation="linear")),
        ),
        GlobalAveragePool2D(),
        Dense(units=10, activation="linear"),
    ),
    optimizer=SGD(learning_rate=0.1),
)
FROZEN = variant(WORKLOADS["mnist-cnn"], name="frozen", frozen_layers=4)
ALL = {**WORKLOADS, "residual": RESIDUAL, "frozen": FROZEN}


@every_pair
@pytest.mark.parametrize("name", ALL)
def test_weights_come_back_in_the_catalogues_order_and_layout(
    opened: Opener, framework: str, recipe: str, name: str
) -> None:
    workload = ALL[name]
    session = opened(framework, workload, recipe, BATCH)
    start = seeded.initial_weights(workload)
    now = list(session.trained_parameters())
    assert len(now) == len(list(trained_tensors(workload)))
    for tensor, values in zip(trained_tensors(workload), now, strict=True):
        np.testing.assert_array_equal(values, start[tensor.index][tensor.name], tensor.name)
    assert set(witness.movements(session, workload, start)) == {0.0}
    session.train_block(3)
    session.sync()
    moved = witness.movements(session, workload, start)
    assert all(norm and norm > 0 for norm in moved), moved


@every_pair
@pytest.mark.parametrize("name", ["mnist-cnn", "fashion-mlp"])
def test_steps_are_counted(opened: Opener, framework: str, recipe: str, name: str) -> None:
    """Under RMSprop and Adam; by the optimiser where the framework has a counter."""
    session = opened(framework, WORKLOADS[name], recipe, BATCH)
    assert session.step_count() == 0
    for total, steps in ((1, 1), (18, 17), (25, 7)):
        session.train_block(steps)
        session.sync()
        assert session.step_count() == total
    by_loop = framework == "jax" or (framework, recipe) == ("tensorflow", "tuned")
    assert session.counted_by == ("loop" if by_loop else "optimizer")


@every_pair
@pytest.mark.parametrize("name", ["fashion-cnn", "fashion-mlp"])
def test_masks_drop_their_share_and_change(
    opened: Opener, framework: str, recipe: str, name: str
) -> None:
    workload = WORKLOADS[name]
    session = opened(framework, workload, recipe, BATCH)
    session.train_block(3)
    session.sync()
    before = [values.copy() for values in session.trained_parameters()]
    masks = witness.masks(session, workload, tiny_data(workload))
    rates = [layer.rate for layer in workload.layers if isinstance(layer, Dropout)]
    assert [mask.zeros for mask in masks] == pytest.approx(rates, abs=0.05)
    assert all(mask.differ for mask in masks)
    for earlier, now in zip(before, session.trained_parameters(), strict=True):
        np.testing.assert_array_equal(earlier, now)
    session.train_block(2)
    session.sync()
    assert session.step_count() == 5


@pytest.mark.parametrize("framework", engines.names())
def test_without_dropout_there_are_no_masks(opened: Opener, framework: str) -> None:
    workload = WORKLOADS["mnist-cnn"]
    session = opened(framework, workload, "tuned", BATCH)
    assert witness.masks(session, workload, tiny_data(workload)) == ()
