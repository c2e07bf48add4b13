"""What sessions tell about their own training: weights, steps and masks."""

from typing import Any

import numpy as np
import pytest
from tests.fakes.workloads import cell_of, variant

from bench_agent.worker import conformance_trace, witness
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.layers import Dropout
from bench_protocol.catalogue.workloads import SGD
from bench_protocol.payload.witness import trained_tensors

from .conftest import Opener, installed, tiny_data, without_dropout
from .loops import every_framework, every_model, every_pair_with
from .test_contract import BATCH, RESIDUAL, WORKLOADS

RESIDUAL_WORKLOAD = variant(
    WORKLOADS["mnist-cnn"], name="residual", layers=RESIDUAL, optimizer=SGD(learning_rate=0.1)
)
FROZEN = variant(WORKLOADS["mnist-cnn"], name="frozen", frozen_layers=4)
# The third call is longer than an unrolled body; all within the first epoch.
READ = (1, 2, 19)
ALL = {**WORKLOADS, "residual": RESIDUAL_WORKLOAD, "frozen": FROZEN}


@every_pair_with(ALL)
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


@every_pair_with(["fashion-mlp", "mnist-cnn"])
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


@every_pair_with(["fashion-mlp", "fashion-cnn"])
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


@every_model
def test_the_whole_witness_in_another_precision(
    opened: Opener, framework: str, recipe: str
) -> None:
    workload = WORKLOADS["fashion-mlp"]
    session = opened(framework, workload, recipe, BATCH, "mixed_bfloat16")
    steps = (1, 4, 18)
    losses = witness.losses_after(session, steps)
    told = witness.read(session, workload, seeded.DEFAULT_SEED, tiny_data(workload), steps, losses)
    assert told.steps == (1, 4, 18)
    assert told.losses[0] == pytest.approx(2.4, rel=0.2)
    assert told.step_count == 18
    assert all(told.movements)
    assert [mask.zeros for mask in told.masks] == pytest.approx([0.2], abs=0.05)
    assert [mask.differ for mask in told.masks] == [True]


@every_pair_with(["mnist-cnn", "residual", "fashion-mlp"])
def test_a_rewound_session_trains_the_same_again(
    opened: Opener, framework: str, recipe: str, name: str
) -> None:
    """After an epoch's end, under RMSprop, Adam and SGD."""
    workload = variant(ALL[name], layers=without_dropout(ALL[name]).layers)
    session = opened(framework, workload, recipe, BATCH)
    first = witness.losses_after(session, READ)
    start = seeded.initial_weights(workload)
    moved = witness.movements(session, workload, start)
    session.train_block(20)
    session.sync()
    session.rewind(start)
    assert session.step_count() == 0
    assert set(witness.movements(session, workload, start)) == {0.0}
    data = tiny_data(workload)
    again = witness.rewound(session, workload, seeded.DEFAULT_SEED, data, BATCH, READ)
    assert again.start_loss == pytest.approx(first[0], rel=1e-6)
    assert again.losses == pytest.approx(first, rel=1e-5)
    assert again.movements == pytest.approx(moved, rel=1e-5)
    assert session.step_count() == READ[-1]


@every_model
def test_a_rewound_session_drops_in_other_precisions(
    opened: Opener, framework: str, recipe: str
) -> None:
    """With dropout masks may differ; frozen layers keep their weights."""
    workload = variant(WORKLOADS["fashion-cnn"], frozen_layers=2)
    session = opened(framework, workload, recipe, BATCH, "mixed_bfloat16")
    first = witness.losses_after(session, (1, 3))
    start = seeded.initial_weights(workload)
    start[0] = {name: values + 1 for name, values in start[0].items()}
    session.rewind(start)
    assert witness.losses_after(session, (1, 3)) == pytest.approx(first, rel=0.2)


@every_framework
def test_half_precision_shows_in_the_loss_before_the_first_step(
    opened: Opener, framework: str
) -> None:
    workload = WORKLOADS["fashion-mlp"]
    data = tiny_data(workload)
    rows = data.order[:BATCH]
    losses = []
    for precision in ("float32", "mixed_bfloat16"):
        session = opened(framework, workload, "tuned", BATCH, precision)
        losses.append(session.evaluate(data.train_x[rows], data.train_y[rows])[0])
    assert abs(losses[1] - losses[0]) > 1e-5 * losses[0]


# Planted faults of dropout: each shows in the masks. `make faults` plants them in every framework.


def test_layers_left_in_inference_mode_show(opened: Opener) -> None:
    workload = WORKLOADS["fashion-mlp"]
    session = opened("torch", workload, "naive", BATCH)
    session._model.eval()  # type: ignore[attr-defined]
    session.train_block(2)
    (mask,) = witness.masks(session, workload, tiny_data(workload))
    assert mask.zeros == 0.0


def test_masks_that_repeat_show(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """MLX: the random state is not captured, so a compiled step repeats its first mask."""
    import mlx.core as mx

    compiled = mx.compile

    def forgetful(function: Any, inputs: Any, outputs: Any) -> Any:
        return compiled(function, inputs=inputs[:2], outputs=outputs[:2])

    monkeypatch.setattr(mx, "compile", forgetful)
    workload = WORKLOADS["fashion-mlp"]
    session = opened("mlx", workload, "tuned", BATCH)
    session.train_block(2)
    session.sync()
    (mask,) = witness.masks(session, workload, tiny_data(workload))
    assert mask.zeros == pytest.approx(0.2, abs=0.05)
    assert not mask.differ


def test_a_layer_that_is_not_trained_does_not_move(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench_agent.engines.torch import sessions

    before = sessions.optimizer
    monkeypatch.setattr(
        sessions,
        "optimizer",
        lambda settings, trained, fast: before(settings, trained[2:], fast=fast),
    )
    workload = WORKLOADS["fashion-mlp"]
    session = opened("torch", workload, "tuned", BATCH)
    session.train_block(3)
    moved = witness.movements(session, workload, seeded.initial_weights(workload))
    assert moved[:2] == (0.0, 0.0)
    assert all(moved[2:])


@pytest.mark.parametrize(
    "name",
    [
        "fashion-mlp",
        "fashion-cnn",
        pytest.param("cifar100-vgg16", marks=[pytest.mark.long, pytest.mark.timeout(900)]),
    ],
)
def test_masks_change_the_loss_of_every_workload_with_dropout(name: str) -> None:
    """From weights that let a deep network's signal fade, no mask changes the loss of VGG16."""
    workload = workload_named(name)
    cell = cell_of(workload, "mlx")
    assert conformance_trace.masks_change(installed("mlx"), workload, cell)
