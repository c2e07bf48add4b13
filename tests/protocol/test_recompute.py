"""The NumPy recomputation: by finite differences, with faults. The conformance tests of engines
compare it with four frameworks."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.fakes.workloads import TINY, variant

from bench_protocol.catalogue import seeded
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
from bench_protocol.catalogue.workloads import SGD, Adam, RMSprop, Workload
from bench_protocol.payload.witness import trained_tensors
from bench_protocol.recompute import (
    Job,
    Recomputed,
    band,
    pictures,
    recompute,
    timed_job,
    training,
    witness_band,
)
from bench_protocol.recompute import layers as recompute_layers
from bench_protocol.statistics.student_t import quantile
from bench_protocol.training import conformance

SEED = "0123456789abcdef" * 2


def trace_job(
    workload: Workload, optimizer: conformance.TracedOptimizer, seed: str, batch_size: int = 32
) -> Job:
    """A trace of five batches."""
    return Job(workload, batch_size, seed, 5 * batch_size, "trace", optimizer)


@cache
def small_trace(steps: int, seed: str = SEED, name: str = "mnist-cnn") -> Recomputed:
    return recompute(trace_job(workload_named(name), "workload", seed), steps)


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


def test_one_step_of_each_optimiser_by_hand() -> None:
    """From zero state: SGD -lr g; RMSprop -lr g / sqrt(0.1 g^2 + e); Adam close to -lr sign(g)."""
    gradient = np.array([2.0, -0.5])
    for settings, expected in (
        (SGD(), -0.01 * gradient),
        (RMSprop(), -1e-3 * gradient / np.sqrt(0.1 * gradient**2 + 1e-7)),
        (Adam(), -1e-3 * np.sign(gradient)),
    ):
        weights = np.zeros(2)
        training.Update(settings, weights).apply(gradient, 1)
        np.testing.assert_allclose(weights, expected, rtol=1e-4)


def test_more_steps_begin_with_fewer() -> None:
    assert small_trace(5).losses[:3] == small_trace(3).losses
    assert small_trace(5).movements != small_trace(3).movements


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
    moved = recompute(timed_job(workload, 16, SEED), 2)
    assert len(moved.movements) == 4
    assert min(moved.movements) > 0


def test_a_movement_is_the_norm_of_the_weights_change() -> None:
    """SGD's first step moves a tensor by lr |g|: the last bias by lr |mean(softmax - one-hot)|."""
    workload = variant(TINY, layers=(Flatten(), Dense(units=10, activation="linear")))
    job = trace_job(workload, "sgd", SEED, 16)
    kernel, bias = job.weights()[1].values()
    rows = seeded.order(job.samples, 0, SEED)[:16]
    x, labels = seeded.generated_rows(job.trained.data_set, "train", rows)
    floats = (x / np.float32(255)).reshape(16, -1).astype(np.float64)
    logits = floats @ kernel + bias
    _, change = recompute_layers.softmax_cross_entropy(logits, labels)
    expected = 0.01 * np.linalg.norm(change.mean(axis=0))
    assert recompute(job, 1).movements[1] == pytest.approx(expected, rel=1e-6)


def test_a_batch_in_parts_is_the_same_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = small_trace(2)
    monkeypatch.setattr(training, "PART_VALUES", 1 << 18)
    parts = recompute(trace_job(workload_named("mnist-cnn"), "workload", SEED), 2)
    assert parts.losses == pytest.approx(whole.losses, rel=1e-13)
    assert parts.movements == pytest.approx(whole.movements, rel=1e-9)


def test_a_timed_session_keeps_the_numbers_of_layers_behind_dropout() -> None:
    """The traced model without Dropout has other weights: its layers have other numbers."""
    workload = workload_named("fashion-mlp")
    timed = recompute(timed_job(workload, 32, SEED), 1)
    dense = [layer for layer in workload.layers if not isinstance(layer, Dropout)]
    without = recompute(timed_job(variant(workload, layers=tuple(dense)), 32, SEED), 1)
    assert abs(timed.losses[0] / without.losses[0] - 1) > 1e-3


def test_real_samples_are_taken_in_the_jobs_order() -> None:
    job = timed_job(TINY, 16, SEED)
    split = seeded.generated_data(TINY.data_set, "train")
    assert recompute(job, 3, split) == recompute(job, 3)
    turned = (split[0][::-1].copy(), split[1][::-1].copy())
    assert recompute(job, 3, turned) != recompute(job, 3)


@pytest.mark.parametrize("steps", [0, 17])
def test_only_steps_of_the_first_epoch(steps: int) -> None:
    with pytest.raises(ValueError, match="an epoch has 16"):
        recompute(timed_job(TINY, 16, SEED), steps)


@pytest.mark.parametrize("changes", [{"batch_size": 0}, {"batch_size": 257}, {"optimizer": "sgd"}])
def test_a_job_that_cannot_be(changes: dict[str, Any]) -> None:
    fields = {"workload": TINY, "batch_size": 16, "seed": SEED, "samples": 256}
    with pytest.raises(ValueError, match=r"must be in 1\.\.256|has its"):
        Job(**(fields | changes))


def test_without_dropout_the_band_is_a_line() -> None:
    job = timed_job(TINY, 16, SEED)
    line = witness_band(job, 2)
    assert line.low == line.high == recompute(job, 2)


def dropped_job(*layers: Layer, rate: float = 0.3) -> Job:
    """A small model with Dropout behind these layers."""
    layers = (Flatten(), *layers, Dropout(rate=rate), Dense(units=10, activation="linear"))
    return timed_job(variant(TINY, layers=layers), 16, SEED)


def test_all_draws_of_a_band_share_one_data_and_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The data is generated once, and each draw begins at the starting weights again."""
    job, made = dropped_job(Dense(units=64)), []
    generated_rows = seeded.generated_rows

    def counted(*arguments: Any) -> Any:
        made.append(arguments)
        return generated_rows(*arguments)

    monkeypatch.setattr(seeded, "generated_rows", counted)
    witness_band(job, 2, draws=3)
    assert len(made) == 1
    again = training.Training(job, 2)
    runs = [band._run(again, job, 2, draw) for draw in (0, 1, 0)]
    assert runs[0] == runs[2] != runs[1]
    assert runs[1] == band._run(training.Training(job, 2), job, 2, 1)


@pytest.mark.parametrize("rate", [2**-25, 0.2, 0.3, 0.5, 1 - 2**-25])
def test_a_mask_keeps_the_numbers_that_reach_its_rate(
    rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers next to the rate decide."""
    job = dropped_job(rate=rate)
    nearest = np.clip(int(rate * 2**24) + np.arange(-2, 3), 0, 2**24 - 1).astype(np.uint64)
    words = (nearest << np.uint64(40)) + np.uint64(2**40 - 1)
    monkeypatch.setattr(seeded, "raw_words", lambda stream, seed, count: words)
    kept = band._masks(job, 2, 1)(1, (len(words),))
    numbers = seeded.unit_interval(words)
    np.testing.assert_array_equal(kept, np.where(numbers >= rate, 1 / (1 - rate), 0.0))


@pytest.mark.parametrize("name", ["mnist-cnn", "fashion-cnn", "fashion-convnet"])
def test_a_part_of_a_batch_fits_a_cache(name: str) -> None:
    """Beyond a few MiB the C library maps each array again, a quarter of the time."""
    workload = workload_named(name)
    largest = max(math.prod(shape) for shape in workload.shapes)
    of_part = training._part(workload, workload.batch_size) * largest
    assert 1 << 17 < of_part <= 1 << 18


def test_another_draw_of_masks_lies_in_the_band() -> None:
    job = dropped_job(Dense(units=64))
    found = witness_band(job, 8, draws=6)
    other = witness_band(replace(job), 8, draws=7)
    assert found == witness_band(job, 8, draws=6)
    for values in ("losses", "movements"):
        low, high = getattr(found.low, values), getattr(found.high, values)
        assert all(below < above for below, above in zip(low, high, strict=True))
        ends = zip(getattr(other.low, values), getattr(other.high, values), strict=True)
        centre = [(below * above) ** 0.5 for below, above in ends]
        assert all(a < c < b for a, c, b in zip(low, centre, high, strict=True))


def test_all_movements_together_are_missed_as_seldom_as_one_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four movements that are as spread as the loss have a wider range each."""
    drawn = iter((1.0, 1.1, 0.9, 1.2, 1.0, 0.8))

    def run(*arguments: Any) -> Recomputed:
        value = next(drawn)
        return Recomputed((value,), (value,) * 4)

    monkeypatch.setattr(band, "_run", run)
    found = witness_band(dropped_job(), 1, draws=6)
    low, high = (end.losses + end.movements for end in (found.low, found.high))
    loss, *moved = (math.log(above / below) for below, above in zip(low, high, strict=True))
    wider = quantile(5, 1 - band.MISSED / 4) / quantile(5, 1 - band.MISSED)
    assert moved == pytest.approx([wider * loss] * 4)
