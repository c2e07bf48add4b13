"""The contract of every engine, with every recipe, on every workload."""

import itertools
import math
import sys

import pytest
from tests.fakes.workloads import cell_of, small, variant

from bench_agent import engines
from bench_agent.engines import common
from bench_agent.engines.seam import HasForms
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.layers import (
    BatchNorm,
    Conv2D,
    Dense,
    Flatten,
    GlobalAveragePool2D,
    Layer,
    MaxPool2D,
    Residual,
    ZeroPad2D,
)
from bench_protocol.catalogue.matrix import Device
from bench_protocol.catalogue.workloads import SGD, Workload

from .conftest import Opener, evaluated, losses, without_dropout
from .loops import every_framework, every_model, every_pair

BATCH = 16
# Longer than any unrolled loop (16 steps). The odd samples make a short batch that must be dropped.
BATCHES = 20
SAMPLES = BATCHES * BATCH + 5
# These have the layers of others, or take too long: test_reading.py trains them a few steps.
ELSEWHERE = {"cifar100-vgg16", "resnet50-transfer", "fashion-convnet", "mnist-dense"}
WORKLOADS = {
    workload.name: small(workload, SAMPLES)
    for workload in CATALOGUE
    if workload.name not in ELSEWHERE
}
REFERENCES: dict[str, list[float]] = {}
STEPS = 4
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
    assert "NVIDIA" in (engine.why_not("cpu", "naive", "tf32") or "")
    assert "GPU" in (engine.why_not("cpu", "naive", "mixed_float16") or "")
    assert engine.why_not("cuda" if sys.platform == "darwin" else "metal", "naive", "float32")
    assert engine.import_name.split(".")[0] not in set(sys.modules) - before


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match="jax, mlx, tensorflow, torch"):
        engines.engine_named("_blas")


@every_pair
def test_a_session(opened: Opener, framework: str, recipe: str) -> None:
    """Dropout on: what is timed must learn, past an epoch's end, and answer every question."""
    workload = WORKLOADS["fashion-mlp"]
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


@pytest.mark.parametrize("recipe", ["naive", "pipeline"])
def test_the_loss_is_the_last_batchs_at_an_epochs_end(opened: Opener, recipe: str) -> None:
    """Keras' ``fit`` resets its metrics there; no other loop does anything."""
    workload = variant(without_dropout(WORKLOADS["fashion-mlp"]), optimizer=SGD())
    singly = losses(opened("tensorflow", workload, recipe, BATCH), BATCHES)
    session = opened("tensorflow", workload, recipe, BATCH)
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


@pytest.mark.parametrize(
    ("layers", "frozen"), [(PADDED, 0), (RESIDUAL, 0), (RESIDUAL, len(RESIDUAL) - 1)]
)
@every_model
def test_other_layers_train_the_same(
    opened: Opener, framework: str, recipe: str, layers: tuple[Layer, ...], frozen: int
) -> None:
    """Those of no small workload: padding of an even kernel, residual blocks, frozen layers. Every
    weight is counted, the statistics of a normalisation too."""
    workload = variant(
        WORKLOADS["mnist-cnn"],
        layers=layers,
        frozen_layers=frozen,
        optimizer=SGD(learning_rate=0.1),
    )
    right = reference(opened, workload)
    session = opened(framework, workload, recipe, BATCH)
    assert session.parameter_count() == workload.parameter_count
    assert losses(session, STEPS) == pytest.approx(right, rel=TOLERANCE)


@every_framework
def test_the_matrix_product_runs(opened: Opener, framework: str) -> None:
    opened(framework, WORKLOADS["fashion-mlp"], "naive", BATCH)
    products = engines.engine_named(framework).products(64)
    products.request(3)
    products.sync()
    assert products.read() != 0
    assert engines.engine_named(framework).libraries() is not None
    assert engines.engine_named(framework).settings() is not None


@every_framework
def test_pictures_too_many_for_floats_stay_bytes(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, framework: str
) -> None:
    """Pictures of a convolution, whose layout some frameworks change."""
    workload = variant(WORKLOADS["mnist-cnn"], optimizer=SGD())
    floats = losses(opened(framework, workload, "tuned", BATCH), 3)
    monkeypatch.setattr(common, "LARGEST_FLOAT_DATA_BYTES", 0)
    session = opened(framework, workload, "tuned", BATCH)
    assert session.settings["data_on_device"] == "uint8"
    assert losses(session, 3) == pytest.approx(floats, rel=TOLERANCE)


@pytest.mark.parametrize(
    ("framework", "forms"),
    [("tensorflow", ("graph", "xla")), ("torch", ("eager", "cuda_graph", "compiled_cuda_graph"))],
)
def test_forms_are_for_tuned_on_cuda(framework: str, forms: tuple[str, ...]) -> None:
    engine = engines.engine_named(framework)
    assert isinstance(engine, HasForms)
    cell = cell_of(WORKLOADS["fashion-mlp"], framework, "tuned")
    cuda = {"device": Device(kind="cuda")}
    assert engine.forms(cell.model_copy(update=cuda)) == forms
    assert engine.forms(cell) == ()
    assert engine.forms(cell.model_copy(update={**cuda, "recipe": "pipeline"})) == ()
