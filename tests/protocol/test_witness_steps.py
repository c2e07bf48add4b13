"""How many steps a witness has: within an epoch, and within what ten seconds recompute."""

import pytest
from tests.fakes.workloads import TINY, small, variant

from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.training.witness_steps import (
    RECOMPUTED_SAMPLES,
    THREE_STEPS,
    is_quick,
    mask_draws,
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
        ("mnist-dense", 32, (1, 24, 64)),
        ("cifar100-vgg16", 128, (1, 2, 3)),
        ("cifar100-vgg16", 64, (1, 2, 4)),
        ("cifar100-vgg16", 256, (1,)),
        ("resnet50-transfer", 32, (1, 2, 3)),
        ("resnet50-transfer", 48, (1,)),
        ("resnet50-transfer", 1000, (1,)),
    ],
)
def test_steps(name: str, batch_size: int, steps: tuple[int, ...]) -> None:
    assert witness_steps(workload_named(name), batch_size) == steps


@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda workload: workload.name)
def test_every_batch_size_of_the_catalogue_is_quick(workload: Workload) -> None:
    assert workload.name in RECOMPUTED_SAMPLES
    for batch_size in {workload.batch_size, *workload.batch_sizes}:
        steps = witness_steps(workload, batch_size)
        assert is_quick(workload, batch_size)
        assert steps[-1] <= workload.steps_per_epoch(batch_size)
        samples = steps[-1] * batch_size * mask_draws(workload)
        three = 3 * workload.batch_size if workload.name in THREE_STEPS else 0
        assert samples <= max(three, RECOMPUTED_SAMPLES[workload.name])


def test_a_large_batch_gives_one_loss_and_is_not_quick() -> None:
    workload = workload_named("cifar100-vgg16")
    assert witness_steps(workload, 10_000) == (1,)
    assert not is_quick(workload, 10_000)


def test_another_workload_is_counted_by_its_flops() -> None:
    assert witness_steps(TINY, 16) == (1, 4, 8)  # its epoch has 16 steps
    assert witness_steps(small(TINY, 16 * 64), 16) == (1, 24, 64)
    assert is_quick(variant(TINY, batch_size=64), 64)
