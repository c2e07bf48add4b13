"""The contract of every engine, with every recipe, on every workload."""

import itertools
import math
import sys

import pytest
from tests.fakes.workloads import small, variant

from bench_agent import engines
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.layers import Dense, Flatten
from bench_protocol.catalogue.workloads import SGD, Workload

from .conftest import Opener, evaluated, losses, without_dropout
from .loops import every_framework, every_pair, every_pair_with

BATCH = 16
# Longer than any unrolled loop (16 steps). The odd samples make a short batch that must be dropped.
BATCHES = 20
SAMPLES = BATCHES * BATCH + 5
# These have the layers of others, or take too long: test_conformance.py trains them a few steps.
ELSEWHERE = {"cifar100-vgg16", "resnet50-transfer", "fashion-convnet", "mnist-dense"}
WORKLOADS = {
    workload.name: small(workload, SAMPLES)
    for workload in CATALOGUE
    if workload.name not in ELSEWHERE
}
WITH_DROPOUT_FIRST = sorted(
    WORKLOADS, key=lambda name: without_dropout(WORKLOADS[name]) == WORKLOADS[name]
)
every_workload = pytest.mark.parametrize("name", WORKLOADS)
REFERENCES: dict[str, list[float]] = {}
STEPS = 5
TOLERANCE = 1e-5
# After twenty steps rounding has grown.
LONG_TOLERANCE = 1e-4


def reference(opened: Opener, workload: Workload) -> list[float]:
    """The losses of TensorFlow's naive loop, trained once."""
    if workload.digest not in REFERENCES:
        REFERENCES[workload.digest] = losses(opened("tensorflow", workload, "naive", BATCH), STEPS)
    return REFERENCES[workload.digest]


@every_framework
def test_an_engine_says_what_it_is_without_importing_its_framework(framework: str) -> None:
    engine = engines.engine_named(framework)
    before = set(sys.modules)
    assert engine.name == framework
    assert engine.distributions
    assert engine.why_not("cpu", "naive", "float32") is None
    assert engine.why_not("cpu", "naive", "mixed_bfloat16") is None
    assert engine.precisions[0] == "float32"
    assert "NVIDIA" in (engine.why_not("cpu", "naive", "tf32") or "")
    assert "GPU" in (engine.why_not("cpu", "naive", "mixed_float16") or "")
    assert engine.why_not("cuda" if sys.platform == "darwin" else "metal", "naive", "float32")
    assert engine.import_name.split(".")[0] not in set(sys.modules) - before


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match="jax, mlx, tensorflow, torch"):
        engines.engine_named("_blas")


@every_pair_with(WITH_DROPOUT_FIRST, further_long=True)
def test_a_session(opened: Opener, framework: str, recipe: str, name: str) -> None:
    """Dropout on: what is timed must learn, past an epoch's end, and answer every question."""
    workload = WORKLOADS[name]
    session = opened(framework, workload, recipe, BATCH)
    assert session.parameter_count() == workload.parameter_count
    assert "cpu" in session.placement().lower()
    assert session.layers == "stock"
    assert session.settings
    before, _ = evaluated(session, workload)
    session.train_block(1)
    session.sync()
    assert session.loss() == pytest.approx(math.log(10), rel=0.2)
    for _ in range(4):
        session.train_block(15)
    session.sync()
    after, accuracy = evaluated(session, workload)
    assert after < 0.75 * before
    assert accuracy > 0.5
    assert math.isfinite(session.loss())
    memory = session.peak_memory_bytes()
    assert memory is None or memory > 0
    session.close()
    session.close()


@every_framework
@every_workload
@pytest.mark.parametrize("optimizer", [pytest.param("own", marks=pytest.mark.long), "sgd"])
def test_all_train_the_same(opened: Opener, framework: str, name: str, optimizer: str) -> None:
    """Single steps: the losses of each recipe are those of TensorFlow's naive one.

    The conformance tests train every framework with the workload's own optimiser too.
    """
    workload = without_dropout(WORKLOADS[name])
    if optimizer == "sgd":
        workload = variant(workload, optimizer=SGD())
    right = reference(opened, workload)
    assert len(set(right)) == STEPS
    for recipe in engines.engine_named(framework).recipes:
        session = opened(framework, workload, recipe, BATCH)
        assert losses(session, STEPS) == pytest.approx(right, rel=TOLERANCE), recipe
        session.close()


@every_pair_with(WORKLOADS, further_long=True)
def test_a_block_is_its_steps(opened: Opener, framework: str, recipe: str, name: str) -> None:
    """The long trace trains such blocks with the further workloads."""
    workload = variant(without_dropout(WORKLOADS[name]), optimizer=SGD())
    singly = losses(opened(framework, workload, recipe, BATCH), 19)
    session = opened(framework, workload, recipe, BATCH)
    total = 0
    for steps in (1, 17, 1):  # an unrolled body, and what is left
        session.train_block(steps)
        session.sync()
        total += steps
        assert session.loss() == pytest.approx(singly[total - 1], rel=LONG_TOLERANCE)


@every_pair
def test_the_loss_is_the_last_batchs_at_an_epochs_end(
    opened: Opener, framework: str, recipe: str
) -> None:
    workload = variant(without_dropout(WORKLOADS["fashion-mlp"]), optimizer=SGD())
    singly = losses(opened(framework, workload, recipe, BATCH), BATCHES)
    session = opened(framework, workload, recipe, BATCH)
    session.train_block(BATCHES)
    session.sync()
    assert session.loss() == pytest.approx(singly[-1], rel=LONG_TOLERANCE)


@every_pair
def test_each_epoch_trains_every_sample_once_in_an_order_of_its_own(
    opened: Opener, framework: str, recipe: str
) -> None:
    """With a learning rate of 0, a batch's loss shows which samples are in it."""
    workload = small(without_dropout(WORKLOADS["fashion-mlp"]), BATCHES * BATCH)
    still = variant(workload, optimizer=SGD(learning_rate=1e-12, momentum=0))
    all_losses = losses(opened(framework, still, recipe, BATCH), 3 * BATCHES)
    epochs = [all_losses[start : start + BATCHES] for start in range(0, 3 * BATCHES, BATCHES)]
    first = losses(opened("mlx", still, "naive", BATCH), BATCHES)
    assert epochs[0] == pytest.approx(first, rel=TOLERANCE)
    for first_losses, second_losses in itertools.combinations(epochs, 2):
        assert first_losses != pytest.approx(second_losses, rel=1e-3)
        assert sum(first_losses) == pytest.approx(sum(second_losses), rel=TOLERANCE)


@every_pair
def test_an_even_kernel_pads_bottom_and_right(
    opened: Opener, framework: str, recipe: str, padded: Workload
) -> None:
    reference = losses(opened("tensorflow", padded, "naive", BATCH), 3)
    assert losses(opened(framework, padded, recipe, BATCH), 3) == pytest.approx(
        reference, rel=TOLERANCE
    )


@pytest.fixture
def padded() -> Workload:
    from bench_protocol.catalogue.layers import Conv2D, MaxPool2D

    workload = WORKLOADS["mnist-cnn"]
    layers = (
        Conv2D(filters=4, kernel=2, padding="same"),
        MaxPool2D(),
        Conv2D(filters=4, kernel=3, padding="same", stride=2),
        Flatten(),
        Dense(units=10, activation="linear"),
    )
    return variant(workload, layers=layers, optimizer=SGD())


@pytest.fixture
def residual() -> Workload:
    """Every layer kind of ResNet50, trained."""
    from bench_protocol.catalogue.layers import (
        BatchNorm,
        Conv2D,
        GlobalAveragePool2D,
        MaxPool2D,
        Residual,
        ZeroPad2D,
    )

    narrow = Conv2D(filters=4, kernel=1, stride=2, padding="valid", activation="linear")
    same = Conv2D(filters=4, kernel=3, padding="same", activation="linear")
    layers = (
        ZeroPad2D(size=1),
        Conv2D(filters=6, kernel=3, padding="valid", activation="linear"),
        BatchNorm(),
        MaxPool2D(size=3, stride=2),
        Residual(
            main=(narrow, BatchNorm(), same, BatchNorm(gamma=0.5, activation="linear")),
            shortcut=(narrow, BatchNorm(activation="linear")),
        ),
        Residual(main=(same, BatchNorm(activation="linear"))),
        GlobalAveragePool2D(),
        Dense(units=10, activation="linear"),
    )
    return variant(WORKLOADS["mnist-cnn"], layers=layers, optimizer=SGD(learning_rate=0.1))


@every_pair
def test_residual_blocks(opened: Opener, framework: str, recipe: str, residual: Workload) -> None:
    """Trained and frozen; every weight is counted, the statistics of a normalisation too."""
    frozen = variant(residual, frozen_layers=len(residual.layers) - 1)
    for workload in (residual, frozen):
        right = reference(opened, workload)[:4]
        session = opened(framework, workload, recipe, BATCH)
        assert session.parameter_count() == workload.parameter_count
        assert losses(session, 4) == pytest.approx(right, rel=TOLERANCE)


@every_pair
def test_frozen_layers_stay(opened: Opener, framework: str, recipe: str) -> None:
    """With every layer but the last frozen, the loss falls and the count stays."""
    workload = without_dropout(WORKLOADS["fashion-mlp"])
    frozen = variant(workload, frozen_layers=len(workload.layers) - 1)
    session = opened(framework, frozen, recipe, BATCH)
    assert session.parameter_count() == workload.parameter_count
    reference = losses(opened("tensorflow", frozen, "naive", BATCH), 3)
    assert losses(session, 3) == pytest.approx(reference, rel=TOLERANCE)
    free = losses(opened(framework, workload, recipe, BATCH), 3)
    assert free[2] != pytest.approx(reference[2], rel=1e-3)


@every_framework
def test_the_matrix_product_runs(opened: Opener, framework: str) -> None:
    opened(framework, WORKLOADS["fashion-mlp"], "naive", BATCH)
    products = engines.engine_named(framework).products(64)
    products.request(3)
    products.sync()
    assert products.read() != 0
    assert engines.engine_named(framework).libraries() is not None
    assert engines.engine_named(framework).settings() is not None
