"""Readings: a restarted session trains what the recomputation in float64 trains."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from tests.fakes.workloads import small, variant

from bench_agent.engines.seam import Session, Start
from bench_agent.worker import witness
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop, Workload
from bench_protocol.payload.witness import trained_tensors
from bench_protocol.recompute.training import Job, Training
from bench_protocol.training.reading import COUNTED_ON, Part

from .conftest import Opener, losses, without_dropout
from .loops import every_framework, every_model, every_pair, every_pair_with
from .test_contract import RESIDUAL

BATCH, PER_EPOCH = 16, 20
# The odd samples make a short batch that must be dropped.
SAMPLES = BATCH * PER_EPOCH + 5
# The second call crosses the epoch's end and is longer than any unrolled loop.
CALLS = (2, 20)
PART = Part("deep", first=17, steps=sum(CALLS), per_epoch=PER_EPOCH)
FIRST = Part("first", first=18, steps=3, per_epoch=PER_EPOCH)
LARGE = ("cifar100-vgg16", "resnet50-transfer")
CNN = small(workload_named("mnist-cnn"), SAMPLES)
# Rounding decides a ReLU or a maximum of these workloads. In batches of 16 that grows to 1e-3 to
# 4e-3 in as many steps under their own optimisers (one run of each framework, four of RMSprop).
SMOOTH = SGD(momentum=0.9)
WORKLOADS = {
    **{w.name: small(w, SAMPLES) for w in CATALOGUE if w.name not in LARGE},
    **{
        name: variant(small(workload_named(name), SAMPLES), optimizer=SMOOTH)
        for name in ("fashion-cnn", "fashion-convnet")
    },
    "residual": variant(CNN, name="residual", layers=RESIDUAL, optimizer=SMOOTH),
    "frozen": variant(CNN, name="frozen", frozen_layers=4),
}
DENSE, MLP = WORKLOADS["mnist-dense"], WORKLOADS["fashion-mlp"]
TOLERANCE = 1e-5
# A scale of 1 moves by some thousand roundings of float32.
FEW_ROUNDINGS = 1e-3


class Figures(NamedTuple):
    """The loss of the last batch and the movement of each tensor."""

    loss: float
    movements: tuple[float, ...]


@cache
def recomputed(workload: Workload, part: Part = PART) -> Figures:
    training = Training(Job(workload, BATCH, seeded.DEFAULT_SEED), part)
    return Figures(training.train(), training.movements())


def start(workload: Workload, part: Part = PART, *, dropout: bool = False) -> Start:
    samples = workload.data_set.train_samples
    orders = tuple(seeded.order(samples, epoch) for epoch in range(part.epochs))
    weights, is_first = seeded.initial_weights(workload), part.kind == "first"
    return Start(weights, orders, part.first, dropout, is_first)


def read(session: Session, workload: Workload, *, dropout: bool = False) -> Figures:
    return train(session, workload, start(workload, dropout=dropout))


def train(
    session: Session, workload: Workload, began: Start, calls: Sequence[int] = CALLS
) -> Figures:
    session.restart(began)
    for steps in calls:
        session.train_block(steps)
        session.sync()
    moved = [norm or 0.0 for norm in witness.movements(session, workload, began.weights)]
    return Figures(session.loss(), tuple(moved))


def deviation(figures: Figures, right: Figures) -> float:
    """The largest relative difference."""
    pairs = zip((figures.loss, *figures.movements), (right.loss, *right.movements), strict=True)
    return max(abs(value / expected - 1) for value, expected in pairs)


def trained(session: Session, steps: Sequence[int] = (1, 7, 19)) -> Session:
    """A session whose next step is in the middle of its second epoch."""
    for count in steps:
        session.train_block(count)
        session.sync()
    return session


@every_pair_with(WORKLOADS)
def test_a_reading_is_the_recomputation(
    opened: Opener, framework: str, recipe: str, name: str
) -> None:
    workload = WORKLOADS[name]
    session = trained(opened(framework, workload, recipe, BATCH))
    before = session.step_count()
    figures, right = read(session, workload), recomputed(workload)
    assert figures.loss == pytest.approx(right.loss, rel=TOLERANCE)
    assert deviation(figures, right) < (FEW_ROUNDINGS if name == "residual" else TOLERANCE)
    assert session.step_count() == before + COUNTED_ON + sum(CALLS)


@every_pair
@pytest.mark.parametrize("optimizer", [Adam(), RMSprop(), SGD(momentum=0.9)])
def test_under_each_optimizer_a_second_reading_gives_the_same_figures(
    opened: Opener, framework: str, recipe: str, optimizer: Optimizer
) -> None:
    workload = variant(DENSE, optimizer=optimizer)
    session = opened(framework, workload, recipe, BATCH)
    right = recomputed(workload)
    # The first reading is that of a session that has trained no step.
    for _ in range(3):
        assert deviation(read(session, workload), right) < TOLERANCE
        trained(session, (25,))
    # First steps have an empty state and Adam's bias corrections; later readings go on.
    figures = train(session, workload, start(workload, FIRST), (1, 2))
    assert deviation(figures, recomputed(workload, FIRST)) < TOLERANCE
    assert session.step_count() == 3
    assert deviation(read(session, workload), right) < TOLERANCE


@every_pair
def test_dropout_is_off_and_on(opened: Opener, framework: str, recipe: str) -> None:
    off_and_on(opened(framework, MLP, recipe, BATCH))


def off_and_on(session: Session) -> None:
    """A session of ``MLP`` is the recomputation without dropout, and draws new masks with it."""
    trained(session)
    right = recomputed(MLP)
    assert deviation(read(session, MLP), right) < TOLERANCE
    first, second = (read(session, MLP, dropout=True) for _ in range(2))
    assert deviation(first, right) > 1e-3
    # Random numbers do not go back.
    assert deviation(first, second) > 1e-3
    assert deviation(read(session, MLP), right) < TOLERANCE


@every_pair
def test_orders_that_follow_have_all_samples(opened: Opener, framework: str, recipe: str) -> None:
    """With a learning rate of 0, a batch's loss shows which samples are in it."""
    workload = small(without_dropout(MLP), BATCH * PER_EPOCH)
    still = variant(workload, optimizer=SGD(learning_rate=1e-12, momentum=0))
    session = opened(framework, still, recipe, BATCH)
    first = losses(session, PER_EPOCH)
    part = Part("short", PER_EPOCH - 3, 3, PER_EPOCH)
    session.restart(start(still, part))
    assert losses(session, 3) == pytest.approx(first[-3:], rel=TOLERANCE)
    for _ in range(2):
        after = losses(session, PER_EPOCH)
        assert after != pytest.approx(first, rel=1e-3)
        assert sum(after) == pytest.approx(sum(first), rel=TOLERANCE)


@every_pair_with(WORKLOADS)
def test_weights_come_back_in_the_catalogues_order_and_layout(
    opened: Opener, framework: str, recipe: str, name: str
) -> None:
    workload = WORKLOADS[name]
    session = opened(framework, workload, recipe, BATCH)
    weights = seeded.initial_weights(workload)
    now = list(session.trained_parameters())
    for tensor, values in zip(trained_tensors(workload), now, strict=True):
        np.testing.assert_array_equal(values, weights[tensor.index][tensor.name], tensor.name)
    trained(session, (3,))
    assert all(norm and norm > 0 for norm in witness.movements(session, workload, weights))
    session.restart(start(workload))
    assert set(witness.movements(session, workload, weights)) == {0.0}


@every_pair_with(["fashion-mlp", "mnist-cnn"])
def test_steps_are_counted(opened: Opener, framework: str, recipe: str, name: str) -> None:
    """Under Adam and RMSprop; by the optimiser where the framework has a counter."""
    session = opened(framework, WORKLOADS[name], recipe, BATCH)
    assert session.step_count() == 0
    for total, steps in ((1, 1), (18, 17), (25, 7)):
        session.train_block(steps)
        session.sync()
        assert session.step_count() == total
    by_loop = framework == "jax" or (framework, recipe) == ("tensorflow", "tuned")
    assert session.counted_by == ("loop" if by_loop else "optimizer")


@every_model
def test_a_reading_in_another_precision(opened: Opener, framework: str, recipe: str) -> None:
    """Frozen layers keep their weights."""
    workload = variant(WORKLOADS["fashion-cnn"], frozen_layers=2)
    session = trained(opened(framework, workload, recipe, BATCH, "mixed_bfloat16"), (3,))
    began = start(workload)
    began.weights[0] = {name: values + 1 for name, values in began.weights[0].items()}
    session.restart(began)
    trained(session, CALLS)
    assert session.loss() == pytest.approx(recomputed(workload).loss, rel=0.2)


@every_framework
def test_half_precision_shows_in_the_loss_before_the_first_step(
    opened: Opener, framework: str
) -> None:
    x, y = seeded.generated_data(MLP.data_set, "train")
    in_float32, in_half = (
        opened(framework, MLP, "tuned", BATCH, precision).evaluate(x[:BATCH], y[:BATCH])[0]
        for precision in ("float32", "mixed_bfloat16")
    )
    assert abs(in_half - in_float32) > 1e-5 * in_float32
