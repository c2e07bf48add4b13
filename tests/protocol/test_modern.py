"""The modern workloads: size, arithmetic, generated text, the order of a reading."""

import math

import numpy as np
import pytest
from tests.fakes.modern import SMALL_GPT

from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.layers import Conv2D
from bench_protocol.catalogue.modern import CHARACTERS, MODERN
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.training.loss_by_steps import floor_of
from bench_protocol.training.reading import convolves

GPT, RESNET = MODERN


def test_the_gpt_has_the_weights_and_flops_of_its_published_form() -> None:
    blocks = 6 * 12 * 384**2
    others = 2 * 65 * 384 + 256 * 384 + 13 * 384
    assert GPT.parameter_count == blocks + others == 10_770_048
    # 6 N of all kernels and 12 L T d of attention (Chowdhery et al. 2022, appendix B).
    per_token = 6 * (blocks + 65 * 384) + 12 * 6 * 256 * 384
    assert GPT.training_flops_per_sample == 256 * per_token
    assert (GPT.data_set.unit, GPT.data_set.units_per_sample) == ("token", 256)


def test_the_resnet_has_the_weights_of_its_published_form() -> None:
    statistics = 2 * (64 + 4 * 64 + 5 * (128 + 256 + 512))
    assert RESNET.parameter_count - statistics == 11_173_962
    assert RESNET.training_flops_per_sample == pytest.approx(3.34e9, rel=0.01)
    assert (RESNET.data_set.unit, RESNET.data_set.units_per_sample) == ("sample", 1)


@pytest.mark.parametrize("workload", MODERN, ids=lambda one: one.name)
def test_a_definition_reads_back_from_its_json(workload: Workload) -> None:
    again = Workload.model_validate_json(workload.model_dump_json())
    assert again.digest == workload.digest


def test_a_residual_block_convolves_only_where_it_has_a_convolution() -> None:
    assert (convolves(GPT), convolves(RESNET)) == (False, True)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [1, 3])
def test_centred_padding_is_half_a_kernel_on_each_side(kernel: int, stride: int) -> None:
    layer = Conv2D(filters=2, kernel=kernel, stride=stride, padding="centred", bias=False)
    half = kernel // 2
    assert layer.padding_zeros((8, 8, 3)) == ((half, half), (half, half))
    assert layer.output_shape((8, 8, 3)) == (8 // stride, 8 // stride, 2)
    assert layer.weight_shapes((8, 8, 3)) == {"kernel": (kernel, kernel, 3, 2)}


def test_text_follows_few_successors_and_labels_are_the_next_tokens() -> None:
    tokens, labels = seeded.generated_data(CHARACTERS, "train", 200)
    assert (tokens.dtype, labels.dtype, tokens.shape) == (np.uint16, np.int32, (200, 256))
    assert np.array_equal(tokens[:, 1:], labels[:, :-1])
    assert tokens.max() < CHARACTERS.classes
    assert np.unique(tokens).size > 40
    pairs = np.zeros((65, 65))
    np.add.at(pairs, (tokens.ravel(), labels.ravel()), 1)
    shares = pairs / np.maximum(pairs.sum(axis=1, keepdims=True), 1)
    entropies = -(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=1)
    floor = float((entropies * pairs.sum(axis=1)).sum() / pairs.sum())
    assert 1.2 < floor < 1.8 < math.log(65)
    # So few pairs make the entropy seem 0.04 lower (Miller 1955).
    assert floor - 0.02 < floor_of(CHARACTERS) < floor + 0.06


def test_any_rows_of_text_are_those_of_the_whole() -> None:
    tokens, labels = seeded.generated_data(SMALL_GPT.data_set, "train")
    rows = np.array([5, 0, 63, 5])
    assert np.array_equal(seeded.generated_rows(SMALL_GPT.data_set, "train", rows)[0], tokens[rows])
    assert np.array_equal(seeded.generated_rows(SMALL_GPT.data_set, "train", rows)[1], labels[rows])


def test_a_reading_repeats_a_few_samples_of_each_batch_unevenly() -> None:
    plain, repeated = (seeded.reading_order(64, 1, "a" * 32, 16, distinct) for distinct in (16, 3))
    assert np.array_equal(plain, seeded.order(64, 1, "a" * 32))
    for batch, of_few in zip(plain.reshape(-1, 16), repeated.reshape(-1, 16), strict=True):
        assert set(of_few) <= set(batch[:3])
    counts = [np.unique(rows, return_counts=True)[1] for rows in repeated.reshape(-1, 16)]
    assert any(len(set(few.tolist())) > 1 for few in counts)


def test_embeddings_and_kernels_without_bias_start_as_gpt_2() -> None:
    weights = seeded.initial_weights(GPT, "0" * 32)
    for values in (weights[0]["tokens"], weights[0]["positions"], weights[-1]["kernel"]):
        assert np.std(values) == pytest.approx(0.02, rel=0.02)
    assert (weights[-2]["gamma"] == 1).all()
