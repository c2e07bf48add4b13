"""The NumPy recomputation of layers, optimisers and steps, by finite differences and by hand.

The conformance tests of engines compare it with four frameworks.
"""

import weakref
from typing import Any

import numpy as np
import pytest
from tests.fakes.modern import SMALL_GPT, SMALL_RESNET
from tests.fakes.workloads import TINY, dropped, small, variant

from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.layers import (
    LSTM,
    BatchNorm,
    CausalAttention,
    Conv2D,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    GlobalAveragePool2D,
    Layer,
    LayerNorm,
    MaxPool2D,
    Residual,
    Shape,
    ZeroPad2D,
)
from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop, Workload
from bench_protocol.recompute import Job, Training, pictures, training
from bench_protocol.recompute import layers as recompute_layers
from bench_protocol.recompute.optimizers import Update
from bench_protocol.training.reading import (
    MEAN_SQUARE,
    Kind,
    Part,
)

SEED, BATCH = "0123456789abcdef" * 2, 16
PER_EPOCH = TINY.steps_per_epoch(BATCH)


def trained(
    workload: Workload, steps: int = 3, first: int = 0, kind: Kind = "deep", split: Any = None
) -> tuple[float, ...]:
    part = Part(kind, first, steps, workload.steps_per_epoch(BATCH))
    made = Training(Job(workload, BATCH, SEED), part, split)
    return made.train(), *made.movements()


PICTURE: Shape = (6, 7, 3)
GRADIENTS: list[tuple[Layer, Shape]] = [
    (Dense(units=5), (4,)),
    (Dense(units=5, activation="linear"), (3, 4)),
    (Dense(units=5, activation="gelu", bias=False), (3, 4)),
    (Conv2D(filters=4, kernel=3, padding="valid"), PICTURE),
    (Conv2D(filters=4, kernel=2, padding="same"), PICTURE),
    (Conv2D(filters=4, kernel=3, padding="same", stride=2, activation="linear"), PICTURE),
    (Conv2D(filters=4, kernel=1, padding="valid", activation="linear"), PICTURE),
    (Conv2D(filters=4, kernel=1, padding="valid", stride=2), PICTURE),
    (Conv2D(filters=4, kernel=3, padding="centred", stride=2, bias=False), PICTURE),
    (MaxPool2D(), PICTURE),
    (MaxPool2D(size=3, stride=2), PICTURE),
    (ZeroPad2D(size=2), PICTURE),
    (GlobalAveragePool2D(), PICTURE),
    (BatchNorm(gamma=0.5), PICTURE),
    (BatchNorm(activation="linear"), (4,)),
    (BatchNorm(gamma=0.5, statistics="batch"), PICTURE),
    (LayerNorm(), (5, 4)),
    (CausalAttention(heads=2), (5, 6)),
    (Embedding(vocabulary=3, units=4), (5,)),
    (Flatten(), PICTURE),
    (Dropout(rate=0.3), (4,)),
    (LSTM(units=3), (5, 4)),
    (
        Residual(
            main=(Conv2D(filters=4, kernel=3, padding="same"), BatchNorm(activation="linear")),
            shortcut=(Conv2D(filters=4, kernel=1, padding="valid", activation="linear"),),
        ),
        PICTURE,
    ),
    (Residual(main=(Conv2D(filters=3, kernel=3, padding="same", activation="linear"),)), PICTURE),
    (Residual(main=(LayerNorm(), CausalAttention(heads=1)), activation="linear"), (5, 4)),
    (Residual(main=(BatchNorm(statistics="batch"), BatchNorm(statistics="batch"))), PICTURE),
]
# The weights of three samples in a batch.
SHARES = np.array([0.5, 0.3, 0.2])


@pytest.mark.parametrize(("layer", "shape"), GRADIENTS, ids=lambda part: getattr(part, "kind", ""))
def test_the_derivative_is_the_difference_quotient(
    layer: Layer, shape: Shape, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a random weighted sum of the outputs, by every input and every weight. Each sample has its
    share of the gradient, as it has where its loss has one."""
    monkeypatch.setattr(pictures, "PATCH_VALUES", 1)  # every sample is a part of its own
    random = np.random.default_rng(1)
    x = random.normal(size=(3, *shape))
    if isinstance(layer, Embedding):
        x = random.integers(0, layer.vocabulary, x.shape).astype(float)
    values = {
        name: random.normal(size=size) + 2 * (name.endswith("variance"))
        for name, size in layer.weight_shapes(shape).items()
    }
    values |= {name: abs(value) for name, value in values.items() if name.endswith("variance")}
    mask = random.integers(0, 2, x.shape) * 1.5 if isinstance(layer, Dropout) else None
    outputs, back = recompute_layers.forward(layer, values, x, mask, SHARES)
    assert outputs.shape == (3, *layer.output_shape(shape))
    weights = random.normal(size=outputs.shape)
    dx, gradients = back(weights, True)

    def total() -> float:
        made = recompute_layers.forward(layer, values, x, mask, SHARES)[0]
        return float((made * weights).sum())

    def quotients(array: Any) -> Any:
        found, step = np.empty(array.shape), 1e-6
        for place in np.ndindex(array.shape):
            start = array[place]
            array[place] = start + step
            above = total()
            array[place] = start - step
            found[place] = (above - total()) / (2 * step)
            array[place] = start
        return found

    if not isinstance(layer, Embedding):
        np.testing.assert_allclose(dx, quotients(x), atol=1e-7, rtol=1e-6)
    statistics = {name for name in values if name.endswith(("mean", "variance"))}
    for name in set(gradients) - statistics:
        np.testing.assert_allclose(
            gradients[name], quotients(values[name]), atol=1e-7, rtol=1e-6, err_msg=name
        )
    assert set(gradients) | statistics == set(values)


def test_attention_is_that_of_each_position_by_hand() -> None:
    """Each head of each position apart: a softmax over the positions so far."""
    layer, shape = CausalAttention(heads=2), (5, 6)
    random = np.random.default_rng(4)
    values = {name: random.normal(size=size) for name, size in layer.weight_shapes(shape).items()}
    x = random.normal(size=shape)
    q, k, v = np.split(x @ values["kernel"], 3, axis=1)
    heads = np.zeros(shape)
    for step in range(5):
        for head in (slice(0, 3), slice(3, 6)):
            shares = np.exp(k[: step + 1, head] @ q[step, head] / np.sqrt(3))
            heads[step, head] = shares @ v[: step + 1, head] / shares.sum()
    made, _ = recompute_layers.forward(layer, values, x[None])
    np.testing.assert_allclose(made[0], heads @ values["output_kernel"], rtol=1e-12)


def test_running_statistics_are_those_of_batches_and_evaluation_takes_them() -> None:
    layer = BatchNorm(activation="linear", statistics="batch")
    x = np.random.default_rng(5).normal(3, 2, size=(2, 4, 4, 1))
    values = {name: np.ones(1) for name in ("gamma", "beta", "variance")} | {"mean": np.zeros(1)}
    y, back = recompute_layers.forward(layer, values, x, shares=np.full(2, 0.5))
    np.testing.assert_allclose([y.mean(), y.std()], [1, 1], rtol=1e-4)
    found = back(np.ones(y.shape), False)[1]
    np.testing.assert_allclose([found["mean"], found["variance"]], [[x.mean()], [x.var()]])
    np.testing.assert_allclose(recompute_layers.forward(layer, values, x)[0], 1 + x, rtol=1e-4)


@pytest.mark.parametrize("workload", [SMALL_GPT, SMALL_RESNET], ids=lambda one: one.name)
@pytest.mark.parametrize("kind", ["deep", "first"])
def test_repeated_samples_are_recomputed_once_by_their_shares(
    workload: Workload, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the batch whose every place is computed; running statistics move too."""
    monkeypatch.setattr(training, "distinct", lambda *_: 3)
    once = trained(workload, 4, 2, kind)
    every = [
        (rows, np.full(BATCH, 1 / BATCH))
        for epoch in range(2)
        for rows in seeded.reading_order(64, epoch, SEED, BATCH, 3).reshape(-1, BATCH)
    ]
    monkeypatch.setattr(training, "_batches", lambda *_: every[2:6])
    assert trained(workload, 4, 2, kind) == pytest.approx(once, rel=1e-10)
    assert min(once) > 0


def test_a_loss_alone_keeps_no_pass_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would keep the activations of all layers of a whole batch."""
    alive: list[weakref.ref[Any]] = []
    forward = training.forward

    def counted(*arguments: Any) -> Any:
        assert sum(back() is not None for back in alive) <= 1
        passed = forward(*arguments)
        alive.append(weakref.ref(passed[1]))
        return passed

    monkeypatch.setattr(training, "forward", counted)
    part = Part("short", 0, 1, SMALL_RESNET.steps_per_epoch(BATCH))
    assert Training(Job(SMALL_RESNET, BATCH, SEED), part).loss() > 0
    assert len(alive) == len(SMALL_RESNET.layers)


@pytest.mark.parametrize("labels", [[0, 3, 4, 1], [[0, 3], [4, 1], [2, 2]]])
def test_the_derivative_of_the_loss_is_the_difference_quotient(labels: Any) -> None:
    """Of one label a sample, and of one a token, whose mean is the sample's loss."""
    labels = np.array(labels, np.int32)
    logits = np.random.default_rng(2).normal(size=(*labels.shape, 5)) * 30
    _, gradient = recompute_layers.softmax_cross_entropy(logits, labels)
    for place in np.ndindex(logits.shape):
        step = np.zeros(logits.shape)
        step[place] = 1e-6
        above = recompute_layers.softmax_cross_entropy(logits + step, labels)[0].sum()
        below = recompute_layers.softmax_cross_entropy(logits - step, labels)[0].sum()
        assert gradient[place] == pytest.approx((above - below) / 2e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("settings", "first", "expected"),
    [
        (SGD(), True, lambda g: -0.01 * g),
        (SGD(), False, lambda g: -0.01 * g),
        (RMSprop(), True, lambda g: -1e-3 * g / np.sqrt(0.1 * g**2 + 1e-7)),
        (RMSprop(), False, lambda g: -1e-3 * g / np.sqrt(0.9 * MEAN_SQUARE + 0.1 * g**2 + 1e-7)),
        (Adam(), True, lambda g: -1e-3 * np.sign(g)),
        # Bias corrections are 1.
        (Adam(), False, lambda g: -1e-4 * g / np.sqrt(0.999 * MEAN_SQUARE + 0.001 * g**2)),
    ],
)
def test_one_step_of_each_optimiser_by_hand(
    settings: Optimizer, first: bool, expected: Any
) -> None:
    gradient, weights = np.array([2.0, -0.5]), np.zeros(2)
    Update(settings, weights, first=first).apply(gradient)
    np.testing.assert_allclose(weights, expected(gradient), rtol=1e-4)


@pytest.mark.parametrize(
    ("settings", "dimensions", "decays"),
    [
        # The decay comes before the update and takes the plain learning rate.
        (Adam(weight_decay=0.1), 2, lambda w: -1e-4 * w),
        (Adam(weight_decay=0.1), 1, lambda w: 0 * w),
        (SGD(weight_decay=0.1), 2, lambda w: -1e-3 * w),
        (SGD(weight_decay=0.1), 1, lambda w: -1e-3 * w),
    ],
)
def test_weights_decay_by_hand(settings: Any, dimensions: int, decays: Any) -> None:
    """By how much more they move than without decay, in two steps: momentum takes up SGD's."""
    start = np.array([3.0, -5.0]).reshape((1, 2)[-dimensions:])
    moved = []
    for one in (settings, settings.model_copy(update={"weight_decay": 0.0})):
        weights, steps = start.copy(), []
        update = Update(one, weights, first=True)
        for _ in range(2):
            before = weights.copy()
            update.apply(np.full(start.shape, 0.25))
            steps.append((before, weights - before))
        moved.append(steps)
    (first, one), (second, two) = moved[0]
    (_, plain_one), (_, plain_two) = moved[1]
    np.testing.assert_allclose(one - plain_one, decays(first), rtol=1e-9, atol=1e-12)
    carried = settings.momentum * decays(first) if isinstance(settings, SGD) else 0
    np.testing.assert_allclose(two - plain_two, decays(second) + carried, rtol=1e-9, atol=1e-12)


def test_only_a_first_reading_begins_at_step_1() -> None:
    """Both train the same batches; Adam moves a weight otherwise."""
    first, short, deep = (trained(TINY, kind=kind) for kind in ("first", "short", "deep"))
    assert short == deep
    assert max(abs(a / b - 1) for a, b in zip(first[1:], short[1:], strict=True)) > 0.1


def test_a_part_is_trained_by_its_batches() -> None:
    """One step has the loss of the starting weights on the batch that it begins with."""
    for first in (0, 5, PER_EPOCH - 1):
        made = Training(Job(TINY, BATCH, SEED), Part("deep", first, 1, PER_EPOCH))
        assert made.loss() == made.train() == pytest.approx(_start_loss(first, 0), rel=1e-12)
    assert len({trained(TINY, 1, first)[0] for first in range(PER_EPOCH)}) == PER_EPOCH


def test_after_an_epochs_end_the_next_order_follows() -> None:
    """With a learning rate of nearly 0 a loss shows which samples are in its batch."""
    still = variant(TINY, optimizer=SGD(learning_rate=1e-12, momentum=0))
    for steps, epoch in ((1, 0), (2, 1), (PER_EPOCH + 2, 2)):
        at = PER_EPOCH - 1 if epoch == 0 else 0
        loss = trained(still, steps, PER_EPOCH - 1)[0]
        assert loss == pytest.approx(_start_loss(at, epoch), rel=1e-9)
    assert _start_loss(0, 1) != pytest.approx(_start_loss(0, 0), rel=1e-3)


def _start_loss(number: int, epoch: int) -> float:
    rows = seeded.order(TINY.data_set.train_samples, epoch, SEED)[number * BATCH :][:BATCH]
    split = seeded.generated_rows(TINY.data_set, "train", rows)
    x, weights = split[0].astype(np.float32) / np.float32(255), seeded.initial_weights(TINY, SEED)
    values = x.astype(np.float64)
    for layer, of_layer in zip(TINY.layers, weights, strict=True):
        values, _ = recompute_layers.forward(layer, of_layer, values)
    losses, _ = recompute_layers.softmax_cross_entropy(values, split[1])
    return float(losses.sum()) / BATCH


def test_a_movement_is_the_norm_of_the_weights_change() -> None:
    """SGD's first step moves a tensor by lr |g|: the last bias by lr |mean(softmax - one-hot)|."""
    layers = (Flatten(), Dense(units=10, activation="linear"))
    workload = variant(TINY, layers=layers, optimizer=SGD())
    kernel, bias = seeded.initial_weights(workload, SEED)[1].values()
    rows = seeded.order(TINY.data_set.train_samples, 0, SEED)[:BATCH]
    x, labels = seeded.generated_rows(TINY.data_set, "train", rows)
    floats = (x / np.float32(255)).reshape(BATCH, -1).astype(np.float64)
    _, change = recompute_layers.softmax_cross_entropy(floats @ kernel + bias, labels)
    expected = 0.01 * np.linalg.norm(change.mean(axis=0))
    assert trained(workload, 1)[2] == pytest.approx(expected, rel=1e-6)


def test_a_batch_in_parts_is_the_same_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = small(workload_named("mnist-cnn"), 64)
    whole = trained(workload, 2)
    monkeypatch.setattr(training, "PART_VALUES", 1 << 17)
    assert training._part(workload, BATCH) < BATCH
    assert trained(workload, 2) == pytest.approx(whole, rel=1e-9)


def test_a_session_keeps_the_numbers_of_layers_behind_dropout() -> None:
    """A model without Dropout has other weights: its layers have other numbers."""
    workload = dropped(Dense(units=16))
    without = [layer for layer in workload.layers if not isinstance(layer, Dropout)]
    assert (
        abs(trained(workload)[0] / trained(variant(workload, layers=tuple(without)))[0] - 1) > 1e-3
    )


def test_real_samples_are_taken_in_the_jobs_order() -> None:
    split = seeded.generated_data(TINY.data_set, "train")
    assert trained(TINY, 5, PER_EPOCH - 2, split=split) == trained(TINY, 5, PER_EPOCH - 2)
    turned = (split[0][::-1].copy(), split[1][::-1].copy())
    assert trained(TINY, split=turned) != trained(TINY)


@pytest.mark.parametrize("batch_size", [0, 257])
def test_a_job_that_cannot_be(batch_size: int) -> None:
    with pytest.raises(ValueError, match=r"must be in 1\.\.256"):
        Job(TINY, batch_size, SEED)
