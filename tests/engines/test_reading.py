"""Readings: a restarted session trains what the recomputation in float64 trains."""

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from tests.fakes.workloads import small, variant

from bench_agent.engines.seam import Session, Start
from bench_agent.worker import witness
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.layers import (
    BatchNorm,
    Conv2D,
    Dense,
    Flatten,
    GlobalAveragePool2D,
    MaxPool2D,
    Residual,
    ZeroPad2D,
)
from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop, Workload
from bench_protocol.payload.witness import trained_tensors
from bench_protocol.recompute.training import Job, Training
from bench_protocol.training.reading import COUNTED_ON, Part

from .conftest import Opener, losses, without_dropout
from .loops import every_model, every_pair, every_pair_with

BATCH, PER_EPOCH = 16, 20
# The odd samples make a short batch that must be dropped.
SAMPLES = BATCH * PER_EPOCH + 5
# The second call crosses the epoch's end and is longer than any unrolled loop.
CALLS = (2, 20)
PART = Part("deep", first=17, steps=sum(CALLS), per_epoch=PER_EPOCH)
FIRST = Part("first", first=18, steps=3, per_epoch=PER_EPOCH)
# Too large here; test_modern has small forms of the last two.
LARGE = ("cifar100-vgg16", "resnet50-transfer", "gpt-char", "cifar-resnet18")
CNN = small(workload_named("mnist-cnn"), SAMPLES)
# Rounding decides a ReLU or a maximum of these workloads. In batches of 16 that grows to 1e-3 to
# 4e-3 in as many steps under their own optimisers (one run of each framework, four of RMSprop).
SMOOTH = SGD(momentum=0.9)
NARROW = Conv2D(filters=4, kernel=1, stride=2, padding="valid", activation="linear")
SAME = Conv2D(filters=4, kernel=3, padding="same", activation="linear")
PADDED = (
    Conv2D(filters=4, kernel=2, padding="same"),
    MaxPool2D(),
    Conv2D(filters=4, kernel=3, padding="same", stride=2),
    Flatten(),
    Dense(units=10, activation="linear"),
)
# Every layer kind of ResNet50.
RESIDUAL = (
    ZeroPad2D(size=1),
    Conv2D(filters=6, kernel=3, padding="valid", activation="linear"),
    BatchNorm(),
    MaxPool2D(size=3, stride=2),
    Residual(
        main=(NARROW, BatchNorm(), SAME, BatchNorm(gamma=0.5, activation="linear")),
        shortcut=(NARROW, BatchNorm(activation="linear")),
    ),
    Residual(main=(SAME, BatchNorm(activation="linear"))),
    GlobalAveragePool2D(),
    Dense(units=10, activation="linear"),
)
WORKLOADS = {
    **{w.name: small(w, SAMPLES) for w in CATALOGUE if w.name not in LARGE},
    **{
        name: variant(small(workload_named(name), SAMPLES), optimizer=SMOOTH)
        for name in ("fashion-cnn", "fashion-convnet")
    },
    "padded": variant(CNN, name="padded", layers=PADDED, optimizer=SMOOTH),
    "residual": variant(CNN, name="residual", layers=RESIDUAL, optimizer=SMOOTH),
    "frozen": variant(CNN, name="frozen", frozen_layers=4),
    "frozen-residual": variant(
        CNN, name="frozen-residual", layers=RESIDUAL, frozen_layers=len(RESIDUAL) - 1
    ),
}
DENSE, MLP = WORKLOADS["mnist-dense"], WORKLOADS["fashion-mlp"]
TF_TUNED = ("tensorflow", "tuned")
TOLERANCE = 1e-5
# A scale of 1 moves by some thousand roundings of float32.
FEW_ROUNDINGS = 1e-3


class Figures(NamedTuple):
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
    """Of a session whose weights are the first ones again, in the catalogue's order and layout."""
    workload = WORKLOADS[name]
    session = opened(framework, workload, recipe, BATCH)
    # The statistics of a normalisation are counted too.
    assert session.parameter_count() == workload.parameter_count
    weights = seeded.initial_weights(workload)
    now = list(session.trained_parameters())
    for tensor, values in zip(trained_tensors(workload), now, strict=True):
        np.testing.assert_array_equal(values, weights[tensor.index][tensor.name], tensor.name)
    assert session.step_count() == 0
    trained(session, (1, 7, 19))
    assert session.step_count() == 27
    without_counter = framework == "torch" and isinstance(workload.optimizer, SGD)
    by_loop = without_counter or framework == "jax" or (framework, recipe) == TF_TUNED
    assert session.counted_by == ("loop" if by_loop else "optimizer")
    assert all(norm and norm > 0 for norm in witness.movements(session, workload, weights))
    session.restart(start(workload))
    assert set(witness.movements(session, workload, weights)) == {0.0}
    before = session.step_count()
    figures, right = read(session, workload), recomputed(workload)
    assert figures.loss == pytest.approx(right.loss, rel=TOLERANCE)
    assert deviation(figures, right) < (FEW_ROUNDINGS if name == "residual" else TOLERANCE)
    assert session.step_count() == before + COUNTED_ON + sum(CALLS)


@every_model
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
def test_each_epoch_has_every_sample_once_in_an_order_of_its_own(
    opened: Opener, framework: str, recipe: str
) -> None:
    """Also after a restart. Without learning, a batch's loss shows which samples are in it."""
    workload = small(without_dropout(MLP), BATCH * PER_EPOCH)
    still = variant(workload, optimizer=SGD(learning_rate=1e-12, momentum=0))
    session = opened(framework, still, recipe, BATCH)
    epochs = [losses(session, PER_EPOCH) for _ in range(3)]
    session.restart(start(still, Part("short", PER_EPOCH - 3, 3, PER_EPOCH)))
    assert losses(session, 3) == pytest.approx(epochs[0][-3:], rel=TOLERANCE)
    after = [(epochs[0], losses(session, PER_EPOCH)) for _ in range(2)]
    for one, other in (*combinations(epochs, 2), *after):
        assert one != pytest.approx(other, rel=1e-3)
        assert sum(one) == pytest.approx(sum(other), rel=TOLERANCE)


@every_model
def test_a_reading_in_another_precision(opened: Opener, framework: str, recipe: str) -> None:
    workload = WORKLOADS["frozen"]
    session = trained(opened(framework, workload, recipe, BATCH, "mixed_bfloat16"), (3,))
    began = start(workload)
    began.weights[0] = {name: values + 1 for name, values in began.weights[0].items()}
    session.restart(began)
    trained(session, CALLS)
    assert session.loss() == pytest.approx(recomputed(workload).loss, rel=0.2)
