"""The catalogue: parameters, identities, residual networks."""

import numpy as np
import pytest
from tests.fakes.workloads import small

from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.layers import BatchNorm, Conv2D, Residual
from bench_protocol.catalogue.workloads import DataSet, Workload

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
# What was measured under a digest compares with nothing else: these must never change once there
# is a release.
DIGESTS = {
    "mnist-cnn": "cc316c0d4d451ef6862b9dd3f317cbe4ab073ced683b339fb7dda5fe10ceff87",
    "fashion-cnn": "0ed6690ea40d4af2cc0c6a97987fa5d510356b635a9a3bdabe309168b547a6cd",
    "cifar100-vgg16": "6dfadf3f5708606f022923ff6ed24e05f4fa961178f2556684dbc9900c655c77",
    "fashion-mlp": "f730735a973cb414c49fc7b37d3fb10b079c42ac1ef2d4fbd7bdb77d44008a51",
    "fashion-convnet": "21e59aed3c12c71115cccbd27712d509b64a71db2d4a3e828af238425c8c5af2",
    "fashion-lstm": "e898b47a12ae4e258bba98e70f7a44b4c9d4fa96d88c6fc43f9175022fe4e7ca",
    "mnist-dense": "fc7f2b0c287fb7f3e265d8222f1ed0efec8486c7e5ccadd9cf48687b2c69153a",
    "resnet50-transfer": "4dab0a63345f8f47f5b3c41f8671f0fe2be52dc43a7840c2ef8e9940144a1f31",
}


@pytest.mark.parametrize("name", DIGESTS)
def test_the_parameters_are_the_published_ones_and_digests_stay(name: str) -> None:
    workload = workload_named(name)
    assert (workload.parameter_count, workload.digest) == (PARAMETERS[name], DIGESTS[name])


@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda workload: workload.name)
def test_batch_sizes_fit(workload: Workload) -> None:
    assert workload.batch_size in (workload.batch_sizes or (workload.batch_size,))
    assert all(size <= workload.data_set.train_samples for size in workload.batch_sizes)
    assert workload_named(workload.name) is workload


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
    splits = [seeded.generated_data(one, "train") for one in (data_set, noise)]

    def apart(pictures: np.ndarray, labels: np.ndarray) -> float:
        """Deviation of the classes' mean pictures, as a share of the pictures' deviation."""
        means = np.stack([pictures[labels == label].mean(axis=0) for label in range(10)])
        return float(means.std(axis=0).mean() / pictures.std())

    learnable, random = (apart(*split) for split in splits)
    assert learnable > 2 * random
