"""Seeded weights, order and generated data: fixed numbers on every machine."""

import hashlib
import inspect
import re
from typing import Any

import numpy as np
import pytest

from bench_protocol.catalogue import seeded, streams, tokens
from bench_protocol.catalogue.catalogue import CATALOGUE, MNIST, workload_named
from bench_protocol.catalogue.workloads import DataSet, Workload

SEED, DEFAULT = "0123456789abcdef" * 2, seeded.DEFAULT_SEED
SIZES = {"train_samples": 40, "validation_samples": 8, "test_samples": 10}
SMALL = DataSet(name="dots", sample_shape=(6, 5, 2), classes=3, **SIZES)


def sha(*arrays: Any) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        little = array.astype(array.dtype.newbyteorder("<"))
        digest.update(np.ascontiguousarray(little).tobytes())
    return digest.hexdigest()


def philox(key: int, count: int) -> list[int]:
    """Philox4x64-10 (Salmon et al. 2011, fig. 2, table 2); NumPy's first counter is 1."""
    mask = 2**64 - 1
    words: list[int] = []
    counter = 0
    while len(words) < count:
        counter += 1
        c = [counter & mask, counter >> 64, 0, 0]
        k = [key & mask, key >> 64]
        for _ in range(10):
            left, right = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
            c = [right >> 64 ^ c[1] ^ k[0], right & mask, left >> 64 ^ c[3] ^ k[1], left & mask]
            k = [(k[0] + 0x9E3779B97F4A7C15) & mask, (k[1] + 0xBB67AE8584CAA73B) & mask]
        words += c
    return words[:count]


@pytest.mark.parametrize("purpose", ["order/0", "weights/3/kernel", "été"])
def test_the_stream_is_philox_with_the_documented_key(purpose: str) -> None:
    text = f"trainmark/v1/{purpose}/{SEED}".encode()
    key = int.from_bytes(hashlib.sha256(text).digest()[:16], "little")
    assert seeded.raw_words(purpose, SEED, 11).tolist() == philox(key, 11)


def test_unit_interval() -> None:
    words = np.array([0, 2**40 - 1, 2**40, 2**63, 2**64 - 1], np.uint64)
    assert seeded.unit_interval(words).tolist() == [0, 0, 2**-24, 0.5, 1 - 2**-24]


# Made once, 2026-11, on Linux x86-64. Another machine that gets another number is wrong.
WEIGHTS = {
    ("mnist-cnn", DEFAULT): "5348ffb2f55e9a53d047ad6f89d68ad362a7efbc82c4d810227d22f03674eee4",
    ("mnist-cnn", SEED): "bdc71d4d50553356385a7a5241b216017a78d87e63dea2133c1b60e487beefc0",
    ("fashion-mlp", DEFAULT): "928ffb7ff8df9a4d2ca125c89889769c2bd54a5871f0e17da3df2bf2f51eaf75",
    ("fashion-lstm", DEFAULT): "40ffb63f90d5a58a825423870a124a45a1a42111f82ea36b46126d516c366c0f",
}
ORDERS = {
    (60_000, 0, DEFAULT): "7d44c9af0c6c04dea46dbfb6637434b81826ec9f8bcd424fda9e9011161cc88a",
    (60_000, 1, DEFAULT): "8e69984e446079043a12c4cac8432a03ebf3b1c46efd2026fc40ad2af1877372",
    (50_000, 0, SEED): "6db08b3c5f11d37c8105213645a319efa9945133d2ac95f78112caf48743be86",
    (1, 0, SEED): "df3f619804a92fdb4057192dc43dd748ea778adc52bc498ce80524c014b81119",
}
DATA = {
    ("mnist", "train"): "f6227bc2dc911418b6a9028dd0684de0608701d8aa95461698b2d6281b633154",
    ("mnist", "test"): "53171a3ab34d24fd524661f70fd030adf2549a12b812848dce37f5192144dd3a",
    ("dots", "train"): "ef54a657ce40540e2ee50af12298f54e6ed16adab12deed04aa8878f2b35a716",
    ("dots", "validation"): "223d49493bd6c2eee27e1a2168f0327444346bd699faafab9c16dda5b2ade8f7",
}


@pytest.mark.parametrize(("name", "seed"), WEIGHTS)
def test_golden_weights(name: str, seed: str) -> None:
    weights = seeded.initial_weights(workload_named(name), seed)
    assert sha(*(array for layer in weights for array in layer.values())) == WEIGHTS[name, seed]


@pytest.mark.parametrize(("samples", "epoch", "seed"), ORDERS)
def test_golden_order(samples: int, epoch: int, seed: str) -> None:
    assert sha(seeded.order(samples, epoch, seed)) == ORDERS[samples, epoch, seed]


@pytest.mark.parametrize(("name", "split"), DATA)
def test_golden_data(name: str, split: str) -> None:
    data_set = {"mnist": MNIST, "dots": SMALL}[name]
    samples = 1_000 if name == "mnist" else None
    assert sha(*seeded.generated_data(data_set, split, samples)) == DATA[name, split]


@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda workload: workload.name)
def test_weights_fit_the_layers(workload: Workload) -> None:
    weights = seeded.initial_weights(workload)
    assert len(weights) == len(workload.layers)
    total = 0
    for layer, inputs, arrays in zip(workload.layers, workload.shapes, weights, strict=False):
        assert {name: array.shape for name, array in arrays.items()} == layer.weight_shapes(inputs)
        assert all(array.dtype == np.float32 for array in arrays.values())
        total += sum(array.size for array in arrays.values())
    assert total == workload.parameter_count


def test_the_spread_of_weights() -> None:
    convolution = seeded.initial_weights(workload_named("mnist-cnn"))[2]
    limit = (6 / (9 * (32 + 64))) ** 0.5
    kernel = convolution["kernel"]
    assert np.abs(kernel).max() <= limit
    assert np.abs(kernel).max() > 0.99 * limit
    assert abs(kernel.mean()) < 0.02 * limit
    assert kernel.std() == pytest.approx(limit / 3**0.5, rel=0.02)
    assert not convolution["bias"].any()


def test_the_lstm_starts_with_an_open_forget_gate() -> None:
    lstm = seeded.initial_weights(workload_named("fashion-lstm"))[0]
    assert lstm["bias"].tolist() == [0.0] * 128 + [1.0] * 128 + [0.0] * 256
    assert np.abs(lstm["recurrent_kernel"]).max() <= np.float32((3 / 128) ** 0.5)
    assert np.abs(lstm["kernel"]).max() <= np.float32((6 / (28 + 512)) ** 0.5)


@pytest.mark.parametrize("samples", [1, 2, 1_000])
def test_an_order_is_a_permutation(samples: int) -> None:
    order = seeded.order(samples, 3, SEED)
    assert order.dtype == np.int32
    assert sorted(order.tolist()) == list(range(samples))


@pytest.mark.parametrize("data_set", [SMALL, MNIST], ids=lambda data_set: data_set.name)
def test_chosen_samples_are_those_of_the_whole(data_set: DataSet) -> None:
    pictures, labels = seeded.generated_data(data_set, "train", 40)
    rows = np.array([7, 8, 9, 39, 0, 3, 3, 38], np.int32)
    chosen = seeded.generated_rows(data_set, "train", rows)
    assert np.array_equal(chosen[0], pictures[rows])
    assert np.array_equal(chosen[1], labels[rows])
    assert (chosen[0].dtype, chosen[1].dtype) == (np.uint8, np.int32)
    other = seeded.generated_rows(data_set, "train", rows, "another")
    assert not np.array_equal(other[0], chosen[0])
    assert [len(part) for part in seeded.generated_rows(data_set, "train", rows[:0])] == [0, 0]


@pytest.mark.parametrize("first", [0, 1, 4, 7])
def test_a_stream_can_be_entered_anywhere(first: int) -> None:
    whole = seeded.raw_words("order/0", SEED, 20)
    assert np.array_equal(seeded.raw_words("order/0", SEED, 9, first), whole[first : first + 9])


def test_splits_share_patterns_but_no_samples() -> None:
    few = MNIST.model_copy(update={"patterns": 10})
    train, train_labels = seeded.generated_data(few, "train", 500)
    test, test_labels = seeded.generated_data(few, "test", 500)
    assert not {picture.tobytes() for picture in train} & {picture.tobytes() for picture in test}
    # With one pattern a class, the nearest training sample's class is right unless drawn at random.
    means = np.stack([np.median(train[train_labels == label], axis=0) for label in range(10)])
    distances = ((test[:, None].astype(float) - means[None]) ** 2).sum(axis=(2, 3, 4))
    right = 1 - seeded.WRONG_LABELS / 256 * 9 / 10
    assert (distances.argmin(axis=1) == test_labels).mean() == pytest.approx(right, abs=0.05)
    assert set(train_labels.tolist()) == set(range(10))


@pytest.mark.parametrize(
    "data_set",
    [one.data_set for one in CATALOGUE if not (one.data_set.noise or one.data_set.tokens)],
    ids=lambda data_set: f"{data_set.name} {data_set.patterns}",
)
def test_frequent_patterns_rare_ones_and_wrong_labels(data_set: DataSet) -> None:
    """As docs/protocol.md has it, in plain integers."""
    prefix = f"data/{data_set.name}/{'x'.join(map(str, data_set.sample_shape))}"
    words = seeded.raw_words(f"{prefix}/train/labels", seeded.DATA_SEED, 10_000).tolist()
    _, labels = seeded.generated_data(data_set, "train", 10_000)
    shown = [(word >> 40) ** 2 * data_set.patterns >> 48 for word in words]
    wrong = [(word >> 32 & 255) < 32 for word in words]
    assert labels.tolist() == [
        (word if drawn else pattern) % data_set.classes
        for word, pattern, drawn in zip(words, shown, wrong, strict=True)
    ]
    # u**2 is below a quarter in half of the samples.
    assert sum(k < data_set.patterns / 4 for k in shown) / 10_000 == pytest.approx(0.5, abs=0.02)
    assert sum(wrong) / 10_000 == pytest.approx(1 / 8, abs=0.02)
    assert 0.99 * data_set.patterns < max(shown) < data_set.patterns
    assert np.bincount(labels).max() < 1.5 * 10_000 / data_set.classes + 100


def test_pictures_are_patterns_under_noise() -> None:
    """Patches of 4x4 pixels, most of them dark, cut at the edges."""
    pictures, _ = seeded.generated_data(SMALL, "train")
    prefix = "data/dots/6x5x2"
    words = seeded.raw_words(f"{prefix}/train/labels", seeded.DATA_SEED, 40)
    noise = seeded.raw_words(f"{prefix}/train/noise", seeded.DATA_SEED, 300).astype("<u8")
    left = pictures - (noise.view(np.uint8).reshape(40, 6, 5, 2) >> 5)
    patches = seeded.raw_words(f"{prefix}/patterns", seeded.DATA_SEED, 4_096).astype("<u8")
    values = patches.view(np.uint8)[: 4_096 * 8].reshape(4_096, 2, 2, 2).astype(int)
    values = np.where(values < 32, 6 * values, 0)
    for word, picture in zip(words.tolist(), left, strict=True):
        pattern = values[(word >> 40) ** 2 * 4_096 >> 48]
        assert all(
            (picture[y, x] == pattern[y // 4, x // 4]).all() for y in range(6) for x in range(5)
        )
    assert (values == 0).mean() == pytest.approx(7 / 8, abs=0.02)


def test_data_of_another_shape_is_other_data() -> None:
    flat = MNIST.model_copy(update={"sample_shape": (28, 28)})
    other = seeded.generated_data(flat, "train", 3)[0].reshape(3, 28, 28, 1)
    assert not np.array_equal(other, seeded.generated_data(MNIST, "train", 3)[0])


def test_data_digest_by_hand() -> None:
    pictures = np.arange(12, dtype=np.uint8).reshape(2, 2, 3, 1)
    labels = np.array([1, 258], np.int32)
    expected = hashlib.sha256(
        b"2x2x3x1\n" + bytes(range(12)) + b"2\n" + b"\1\0\0\0\2\1\0\0"
    ).hexdigest()
    assert seeded.data_digest((pictures, labels)) == expected
    # The layout in memory is not part of it, the shape is.
    assert seeded.data_digest((np.asfortranarray(pictures), labels.astype(">i4"))) == expected
    assert seeded.data_digest((pictures.reshape(2, 3, 2, 1), labels)) != expected
    assert seeded.data_digest((pictures, labels), (pictures, labels)) != expected


def test_only_raw_words_of_numpys_generators_are_used() -> None:
    """NumPy's distributions may change between versions; ``random_raw`` may not."""
    source = "".join(map(inspect.getsource, (seeded, streams, tokens)))
    assert set(re.findall(r"np\.random\.(\w+)", source)) == {"Philox"}
    assert not re.search(r"\.(default_rng|Generator|RandomState|uniform|normal|shuffle)\b", source)
