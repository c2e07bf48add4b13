"""How many steps a witness has: within an epoch, and within what ten seconds recompute."""

import pytest
from tests.fakes.workloads import TINY, small

from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.training.witness_steps import (
    LEAST_STEPS,
    is_affordable,
    mask_draws,
    recomputed_samples,
    witness_steps,
)


@pytest.mark.parametrize(
    ("name", "batch_size", "steps"),
    [
        ("mnist-cnn", 64, (1, 24, 64)),
        ("mnist-cnn", 256, (1, 8, 24)),
        ("mnist-cnn", 1024, (1, 4, 8)),
        ("fashion-cnn", 64, (1, 8, 24)),
        ("fashion-mlp", 128, (1, 24, 64)),
        # An epoch has 48 steps.
        ("fashion-mlp", 1024, (1, 8, 24)),
        ("fashion-lstm", 128, (1, 24, 64)),
        ("fashion-lstm", 1024, (1, 4, 8)),
        ("mnist-dense", 32, (1, 24, 64)),
        ("mnist-dense", 60_000, (1,)),
        ("cifar100-vgg16", 128, (1, 2, 3)),
        ("cifar100-vgg16", 64, (1, 2, 3)),
        ("cifar100-vgg16", 256, (1,)),
        ("cifar100-vgg16", 10_000, (1,)),
        ("resnet50-transfer", 32, (1, 2, 3)),
        ("resnet50-transfer", 48, (1,)),
        ("resnet50-transfer", 1000, (1,)),
    ],
)
def test_steps(name: str, batch_size: int, steps: tuple[int, ...]) -> None:
    assert witness_steps(workload_named(name), batch_size) == steps


@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda workload: workload.name)
def test_every_batch_size_of_the_catalogue_is_recomputed(workload: Workload) -> None:
    for batch_size in {workload.batch_size, *workload.batch_sizes}:
        steps = witness_steps(workload, batch_size)
        assert is_affordable(workload, batch_size)
        assert steps[-1] <= workload.steps_per_epoch(batch_size)
        if batch_size <= workload.batch_size:
            assert steps[-1] >= LEAST_STEPS


@pytest.mark.parametrize(
    ("name", "samples"),
    [
        # Measured at the default batch: samples and processor seconds of a session.
        ("mnist-cnn", 4_096 / 2.8),
        ("fashion-cnn", 9_216 / 10.0),
        ("cifar100-vgg16", 256 / 12.5),
        ("fashion-mlp", 49_152 / 3.2),
        ("fashion-convnet", 8_192 / 5.3),
        ("fashion-lstm", 8_192 / 3.5),
        ("resnet50-transfer", 64 / 12.6),
    ],
)
def test_the_cost_is_near_what_was_measured(name: str, samples: float) -> None:
    assert recomputed_samples(workload_named(name)) == pytest.approx(10 * samples, rel=0.15)


def test_dropout_is_drawn_once_where_six_draws_are_long() -> None:
    draws = {workload.name: mask_draws(workload) for workload in CATALOGUE}
    assert {name for name, count in draws.items() if count == 6} == {"fashion-cnn", "fashion-mlp"}


def test_a_large_batch_is_not_recomputed() -> None:
    assert not is_affordable(workload_named("cifar100-vgg16"), 10_000)


def test_a_small_epoch_gives_fewer_steps() -> None:
    assert witness_steps(TINY, 16) == (1, 4, 8)  # its epoch has 16 steps
    assert witness_steps(small(TINY, 16 * 64), 16) == (1, 24, 64)
