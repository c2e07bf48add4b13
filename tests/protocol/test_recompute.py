"""The NumPy recomputation: by finite differences, with faults. The conformance tests of engines
compare it with four frameworks."""

import importlib
import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.fakes.workloads import TINY, small, variant

from bench_protocol.catalogue import nonces, seeded
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.layers import (
    LSTM,
    BatchNorm,
    Conv2D,
    Dense,
    Dropout,
    Flatten,
    GlobalAveragePool2D,
    Layer,
    MaxPool2D,
    Residual,
    Shape,
    ZeroPad2D,
)
from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop, Workload
from bench_protocol.payload.witness import trained_tensors
from bench_protocol.recompute import Job, Training, pictures, training
from bench_protocol.recompute import layers as recompute_layers
from bench_protocol.recompute.figures import MISSED, figures
from bench_protocol.recompute.optimizers import Update
from bench_protocol.statistics.student_t import quantile
from bench_protocol.training.reading import (
    MASK_DRAWS,
    MEAN_SQUARE,
    Kind,
    Part,
    parts,
    parts_recomputed,
)
from bench_protocol.training.recomputed import Recomputed

# The package has a function of the module's name.
recompute_figures = importlib.import_module("bench_protocol.recompute.figures")
SEED, NONCE, BATCH = "0123456789abcdef" * 2, "ab" * 32, 16
PER_EPOCH = TINY.steps_per_epoch(BATCH)


def dropped(*between: Layer, rate: float = 0.3) -> Workload:
    last = Dense(units=10, activation="linear")
    return variant(TINY, layers=(Flatten(), *between, Dropout(rate=rate), last))


def trained(
    workload: Workload, steps: int = 3, first: int = 0, kind: Kind = "deep", split: Any = None
) -> tuple[float, ...]:
    """The loss and the movements of a part."""
    part = Part(kind, first, steps, workload.steps_per_epoch(BATCH))
    made = Training(Job(workload, BATCH, SEED), part, split)
    return made.train(), *made.movements()


PICTURE: Shape = (6, 7, 3)
GRADIENTS: list[tuple[Layer, Shape]] = [
    (Dense(units=5), (4,)),
    (Dense(units=5, activation="linear"), (3, 4)),
    (Conv2D(filters=4, kernel=3, padding="valid"), PICTURE),
    (Conv2D(filters=4, kernel=2, padding="same"), PICTURE),
    (Conv2D(filters=4, kernel=3, padding="same", stride=2, activation="linear"), PICTURE),
    (Conv2D(filters=4, kernel=1, padding="valid", activation="linear"), PICTURE),
    (Conv2D(filters=4, kernel=1, padding="valid", stride=2), PICTURE),
    (MaxPool2D(), PICTURE),
    (MaxPool2D(size=3, stride=2), PICTURE),
    (ZeroPad2D(size=2), PICTURE),
    (GlobalAveragePool2D(), PICTURE),
    (BatchNorm(gamma=0.5), PICTURE),
    (BatchNorm(activation="linear"), (4,)),
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
]


@pytest.mark.parametrize(("layer", "shape"), GRADIENTS, ids=lambda part: getattr(part, "kind", ""))
def test_the_derivative_is_the_difference_quotient(
    layer: Layer, shape: Shape, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a random weighted sum of the outputs, by every input and every weight."""
    monkeypatch.setattr(pictures, "PATCH_VALUES", 1)  # every sample is a part of its own
    random = np.random.default_rng(1)
    x = random.normal(size=(3, *shape))
    values = {
        name: random.normal(size=size) + 2 * (name.endswith("variance"))
        for name, size in layer.weight_shapes(shape).items()
    }
    values |= {name: abs(value) for name, value in values.items() if name.endswith("variance")}
    mask = random.integers(0, 2, x.shape) * 1.5 if isinstance(layer, Dropout) else None
    outputs, back = recompute_layers.forward(layer, values, x, mask)
    assert outputs.shape == (3, *layer.output_shape(shape))
    weights = random.normal(size=outputs.shape)
    dx, gradients = back(weights, True)

    def total() -> float:
        return float((recompute_layers.forward(layer, values, x, mask)[0] * weights).sum())

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

    np.testing.assert_allclose(dx, quotients(x), atol=1e-7, rtol=1e-6)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, quotients(values[name]), atol=1e-7, rtol=1e-6)
    untrained = {name for name in values if name.endswith(("mean", "variance"))}
    assert set(gradients) == set(values) - untrained


def test_the_derivative_of_the_loss_is_the_difference_quotient() -> None:
    logits = np.random.default_rng(2).normal(size=(4, 5)) * 30
    labels = np.array([0, 3, 4, 1], np.int32)
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
    """From an empty state at step 1, and as a session restarts."""
    gradient, weights = np.array([2.0, -0.5]), np.zeros(2)
    Update(settings, weights, first=first).apply(gradient)
    np.testing.assert_allclose(weights, expected(gradient), rtol=1e-4)


def test_only_a_first_reading_begins_at_step_1() -> None:
    """Both train the same batches; Adam moves a weight otherwise."""
    first, short, deep = (trained(TINY, kind=kind) for kind in ("first", "short", "deep"))
    assert short == deep
    assert max(abs(a / b - 1) for a, b in zip(first[1:], short[1:], strict=True)) > 0.1


def test_a_part_is_trained_by_its_batches() -> None:
    """One step has the loss of the starting weights on the batch that it begins with."""
    for first in (0, 5, PER_EPOCH - 1):
        made = Training(Job(TINY, BATCH, SEED), Part("deep", first, 1, PER_EPOCH))
        assert made.loss() == made.train() == _start_loss(first, epoch=0)
    losses = {trained(TINY, 1, first)[0] for first in range(PER_EPOCH)}
    assert len(losses) == PER_EPOCH


def test_after_an_epochs_end_the_next_order_follows() -> None:
    """With a learning rate of nearly 0 a loss shows which samples are in its batch."""
    still = variant(TINY, optimizer=SGD(learning_rate=1e-12, momentum=0))
    for steps, epoch in ((1, 0), (2, 1), (PER_EPOCH + 2, 2)):
        at = PER_EPOCH - 1 if epoch == 0 else 0
        loss = trained(still, steps, PER_EPOCH - 1)[0]
        assert loss == pytest.approx(_start_loss(at, epoch), rel=1e-9)
    assert _start_loss(0, 1) != pytest.approx(_start_loss(0, 0), rel=1e-3)


def _start_loss(number: int, epoch: int) -> float:
    """The loss of one batch of an epoch with the starting weights."""
    rows = seeded.order(TINY.data_set.train_samples, epoch, SEED)[number * BATCH :][:BATCH]
    split = seeded.generated_rows(TINY.data_set, "train", rows)
    x, weights = split[0].astype(np.float32) / np.float32(255), seeded.initial_weights(TINY, SEED)
    values = x.astype(np.float64)
    for layer, of_layer in zip(TINY.layers, weights, strict=True):
        values, _ = recompute_layers.forward(layer, of_layer, values)
    losses, _ = recompute_layers.softmax_cross_entropy(values, split[1])
    return float(losses.sum()) / BATCH


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fashion-lstm", ["0/kernel", "0/recurrent_kernel", "0/bias", "1/kernel", "1/bias"]),
        ("mnist-dense", ["1/kernel", "1/bias", "2/kernel", "2/bias"]),
        # Of a frozen base only the last layer is trained.
        ("resnet50-transfer", ["22/kernel", "22/bias"]),
    ],
)
def test_movements_are_in_the_catalogues_order(name: str, expected: list[str]) -> None:
    tensors = trained_tensors(workload_named(name))
    assert [f"{tensor.index}/{tensor.name}" for tensor in tensors] == expected


def test_statistics_of_normalisations_are_not_trained() -> None:
    block = Residual(main=(BatchNorm(),))
    layers = (block, Flatten(), Dense(units=10, activation="linear"))
    workload = variant(TINY, layers=layers)
    names = [f"{tensor.index}/{tensor.name}" for tensor in trained_tensors(workload)]
    assert names == ["0/main.0.gamma", "0/main.0.beta", "2/kernel", "2/bias"]
    moved = trained(workload, 2)[1:]
    assert len(moved) == 4
    assert min(moved) > 0


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


# -- figures --------------------------------------------------------------------------------------


def by_part(workload: Workload) -> list[tuple[Part, Recomputed]]:
    made = figures(workload, NONCE, BATCH)
    seed = nonces.seed_of(NONCE, workload.digest)
    done = parts_recomputed(parts(workload, BATCH, seed))
    return list(zip(done, made.readings, strict=True))


def right_of(workload: Workload, part: Part) -> tuple[float, ...]:
    job = Job(workload, BATCH, nonces.seed_of(NONCE, workload.digest))
    again = Training(job, part)
    return again.train(), *again.movements()


def ranges(made: Recomputed) -> list[tuple[float, float]]:
    return [made.loss_range, *made.movement_ranges]


def test_the_figures_of_a_session() -> None:
    """Losses of deep readings are exact, their movements but for rounding; short readings are in a
    narrow range around the right value; those that show masks have none."""
    workload = variant(TINY, layers=(Flatten(), Dense(units=64), Dense(units=10)))
    made = by_part(workload)
    assert [part.kind for part, _ in made] == ["deep", "short", "first"]
    for part, found in made:
        right = right_of(workload, part)
        for (low, high), value in zip(ranges(found), right, strict=True):
            if part.kind == "deep":
                assert low * (1 - 1e-9) <= value <= high * (1 + 1e-9)
            else:
                assert low < value < high
            assert high - low < 1e-3 * value
        if part.kind == "deep":
            assert found.loss_range == (pytest.approx(right[0], rel=1e-9),) * 2
    assert [part.kind for part, _ in by_part(dropped())] == [
        *("deep", "short", "first", "masks"),
    ]


def test_a_movement_that_float32_cannot_add_is_in_its_range() -> None:
    """Each step changes most weights by less than half of the distance to the next float32: an
    engine's weights stay where they are, and those of float64 move."""
    workload = variant(TINY, optimizer=SGD(learning_rate=1e-9, momentum=0.0))
    (part, found), *_ = by_part(workload)
    job = Job(workload, BATCH, nonces.seed_of(NONCE, workload.digest))
    made = Training(job, part)
    for _ in range(part.steps):
        made.step()
        for values in made.weights:
            for value in values.values():
                value[:] = value.astype(np.float32)
    kernels = [0, 2]
    moved, right = made.movements(), right_of(workload, part)[1:]
    for index in kernels:
        low, high = found.movement_ranges[index]
        assert low <= moved[index] <= high
        assert abs(moved[index] / right[index] - 1) > 0.1


def test_the_start_loss_is_that_of_the_first_batch() -> None:
    job = Job(TINY, BATCH, nonces.seed_of(NONCE, TINY.digest))
    expected = Training(job, Part("deep", 0, 1, PER_EPOCH)).loss()
    assert figures(TINY, NONCE, BATCH).start_loss == pytest.approx(expected, rel=1e-9)
    assert figures(TINY, "cd" * 32, BATCH) != figures(TINY, NONCE, BATCH)


def test_what_rounding_decides_is_in_the_range_of_a_short_reading() -> None:
    """An input of a ReLU within a rounding of zero: the bias that follows may move or not."""

    class OnEdge:
        """A training whose loss jumps with the least change of a weight."""

        def __init__(self) -> None:
            self.restart()

        def restart(self) -> None:
            self.weights = [{"kernel": np.ones(4)}]

        def train(self) -> float:
            return 2.0 if self.weights[0]["kernel"].min() >= 1 else 2.001

        def movements(self) -> tuple[float, ...]:
            return (1.0,)

    made = recompute_figures._short(OnEdge(), Job(TINY, BATCH, SEED))
    assert made.loss_range == pytest.approx((2 - 4e-3, 2 + 4e-3))
    assert made.movement_ranges == [(1.0, 1.0)]


def test_masks_and_steps_have_streams_of_their_own() -> None:
    workload = dropped()
    job = Job(workload, BATCH, SEED)
    streams = [(draw, step) for draw in range(2) for step in range(2)]
    made = [recompute_figures._masks(job, *stream)(1, (BATCH, 64)) for stream in streams]
    assert len({mask.tobytes() for mask in made}) == 4
    shown = Training(job, Part("masks", 0, 2, PER_EPOCH))
    runs = []
    for draw in (0, 1, 0):
        shown.restart()
        runs.append(shown.train(partial(recompute_figures._masks, job, draw)))
    assert runs[0] == runs[2] != runs[1]


@pytest.mark.parametrize("rate", [2**-25, 0.2, 0.3, 0.5, 1 - 2**-25])
def test_a_mask_keeps_the_numbers_that_reach_its_rate(
    rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers next to the rate decide."""
    job = Job(dropped(rate=rate), BATCH, SEED)
    nearest = np.clip(int(rate * 2**24) + np.arange(-2, 3), 0, 2**24 - 1).astype(np.uint64)
    words = (nearest << np.uint64(40)) + np.uint64(2**40 - 1)
    monkeypatch.setattr(seeded, "raw_words", lambda stream, seed, count: words)
    kept = recompute_figures._masks(job, 2, 1)(1, (len(words),))
    numbers = seeded.unit_interval(words)
    np.testing.assert_array_equal(kept, np.where(numbers >= rate, 1 / (1 - rate), 0.0))


@pytest.mark.parametrize("name", ["mnist-cnn", "fashion-cnn", "fashion-convnet"])
def test_a_part_of_a_batch_fits_a_cache(name: str) -> None:
    """Beyond a few MiB the C library maps each array again, a quarter of the time."""
    workload = workload_named(name)
    largest = max(math.prod(shape) for shape in workload.shapes)
    of_part = training._part(workload, workload.batch_size) * largest
    assert 1 << 17 < of_part <= 1 << 18


def test_another_draw_of_masks_lies_in_the_range() -> None:
    workload = dropped(Dense(units=64))
    (part, found) = by_part(workload)[-1]
    job = Job(workload, BATCH, nonces.seed_of(NONCE, workload.digest))
    again = Training(job, part)
    draw = partial(recompute_figures._masks, job, MASK_DRAWS)
    other = again.train(draw), *again.movements()
    for (low, high), value in zip(ranges(found), other, strict=True):
        assert low < value < high < 3 * low


def test_all_movements_together_are_missed_as_seldom_as_one_loss() -> None:
    """Four movements that are as spread as the loss have a wider range each."""

    values = iter((1.0, 1.1, 0.9, 1.2, 1.0, 0.8) * 2)

    class Drawn:
        def restart(self) -> None:
            self.value = next(values)

        def train(self, masks: object) -> float:
            return self.value

        def movements(self) -> tuple[float, ...]:
            return (self.value,) * 4

    found = recompute_figures._dropping(Drawn(), Job(dropped(), BATCH, SEED))
    loss, *moved = (math.log(high / low) for low, high in ranges(found))
    wider = quantile(11, 1 - MISSED / 4) / quantile(11, 1 - MISSED)
    assert moved == pytest.approx([wider * loss] * 4)
