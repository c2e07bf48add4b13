"""The catalogue: parameters, identities, residual networks."""

import numpy as np
import pytest
from tests.fakes.workloads import small

from bench_protocol import seeded
from bench_protocol.catalogue import CATALOGUE, workload_named
from bench_protocol.layers import BatchNorm, Conv2D, Residual
from bench_protocol.workloads import DataSet, Workload

PARAMETERS = {
    "mnist-cnn": 93_322,
    "fashion-cnn": 412_778,
    "cifar100-vgg16": 34_006_948,
    "fashion-mlp": 435_402,
    "fashion-convnet": 93_322,
    "fashion-lstm": 81_674,
    "mnist-dense": 101_770,
    "resnet50-transfer": 23_587_712 + 20_490,
}
# What was measured under a digest compares with nothing else: these must never change.
DIGESTS = {
    "mnist-cnn": "626477cc0310b471e34010104d69be0dfd5ac5cf42c73edc325d33c60c6cdd24",
    "fashion-cnn": "7e8acb241f6cfb78b5abb2cb7de68402eaa47808c4f53512bd65a22de4dca87a",
    "cifar100-vgg16": "d430f453f274ff91d4c18eead44a4eb091bbb020e9a389ed217f02a017453df4",
    "fashion-mlp": "c83be628d1b27fd133e4556fc7676cf5a92d5f7f975452b14774d410d64bbb72",
    "fashion-convnet": "3e09183884f85af766ab371c10295704f1b1b7caf6b35f828a609fd2d217d404",
    "fashion-lstm": "bf4a4f66fb18669d5a1fb04d5d5a9e3d626361bdf60862201941b0e800b2c382",
    "mnist-dense": "5fc3cefeb477a282d26c8a71221c7cc2b9a232c84fb78faf14f634d5cf1da1da",
    "resnet50-transfer": "47ecf8632cd345ea7b60e83d1bcc413ff1cc462b3f6b341c48ef971e46b2ffbe",
}


def test_the_parameters_are_the_published_ones() -> None:
    assert {workload.name: workload.parameter_count for workload in CATALOGUE} == PARAMETERS


def test_digests_stay() -> None:
    assert {workload.name: workload.digest for workload in CATALOGUE} == DIGESTS


@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda workload: workload.name)
def test_batch_sizes_fit(workload: Workload) -> None:
    assert workload.batch_size in (workload.batch_sizes or (workload.batch_size,))
    assert all(size <= workload.data_set.train_samples for size in workload.batch_sizes)
    assert workload_named(workload.name) is workload


@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda workload: workload.name)
def test_a_workload_survives_its_json(workload: Workload) -> None:
    again = Workload.model_validate_json(workload.model_dump_json())
    assert again.digest == workload.digest
    assert again.shapes[-1] == (workload.data_set.classes,)


def test_resnet_forward_flops_are_as_published() -> None:
    """3.86 GFLOP multiply-adds forward (He et al. 2015, table 1, counts 3.8e9)."""
    resnet = workload_named("resnet50-transfer")
    assert resnet.training_flops_per_sample / 2 == pytest.approx(3.8e9, rel=0.03)
    assert resnet.shapes[-3:] == ((7, 7, 2048), (2048,), (10,))


def test_a_residual_block_counts_both_branches() -> None:
    plain = Conv2D(filters=8, kernel=1, padding="valid", activation="linear")
    block = Residual(main=(plain, BatchNorm(), plain), shortcut=(plain,))
    shape = (4, 4, 8)
    assert block.output_shape(shape) == (4, 4, 8)
    assert len(block.weight_shapes(shape)) == 2 + 4 + 2 + 2
    convolution = 2 * 16 * 64
    assert block.product_flops(shape) == 3 * convolution
    assert block.input_product_flops(shape) == 2 * convolution


def test_normalised_convolutions_start_as_he_says() -> None:
    weights = seeded.initial_weights(workload_named("resnet50-transfer"))
    stem = weights[1]["kernel"]
    assert stem.std() == pytest.approx(np.sqrt(2 / (7 * 7 * 3)), rel=0.02)
    block = weights[5]
    assert set(block["main.5.gamma"]) == {np.float32(0.25)}
    assert set(block["shortcut.1.variance"]) == {np.float32(1)}
    assert not np.array_equal(weights[5]["main.0.kernel"][0, 0, :, 0], block["main.2.bias"])


def test_noise_has_nothing_to_learn() -> None:
    data_set = small(workload_named("mnist-dense"), 200).data_set
    noise = DataSet(**{**data_set.model_dump(), "noise": True})
    learnable, labels = seeded.generated_data(data_set, "train")
    random, same_labels = seeded.generated_data(noise, "train")
    assert np.array_equal(labels, same_labels)

    def apart(pictures: np.ndarray) -> float:
        """Mean distance between the classes' mean pictures."""
        means = np.stack([pictures[labels == label].mean(axis=0) for label in range(10)])
        return float(means.std(axis=0).mean())

    assert apart(learnable) > 2 * apart(random)
