"""The recomputation agrees with an independent float64 computation."""

import pytest

from bench_protocol.catalogue import nonces
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.nonces import Purpose
from bench_protocol.recompute import figures
from bench_protocol.training import conformance, recomputation

from . import float64

NONCE = "5e" * 32
# Figures have ten digits.
AGREEMENT = 1e-8
LARGE = ("cifar100-vgg16", "resnet50-transfer")
JOBS = [
    pytest.param(
        *(workload.name, job.purpose), marks=[pytest.mark.long] if workload.name in LARGE else []
    )
    for workload in CATALOGUE
    for job in recomputation.trace_jobs(workload, NONCE)
]


@pytest.mark.parametrize(("name", "purpose"), JOBS)
def test_two_float64_computations_agree(name: str, purpose: Purpose) -> None:
    pytest.importorskip("torch")
    workload = workload_named(name)
    optimizer: conformance.TracedOptimizer = "workload" if purpose == "workload" else "sgd"
    batches = (
        conformance.LONG_BATCHES
        if purpose == "long"
        else conformance.trace_steps(workload, optimizer)
    )
    traced = conformance.trace_workload(workload, optimizer, batches)
    batch_size = conformance.trace_batch_size(workload)
    right = figures(workload, purpose, NONCE, batch_size)
    seed = nonces.seed_of(NONCE, workload.digest, purpose)
    losses, moved = float64.trained(traced, batch_size, seed, len(right.losses))
    assert max(conformance.deviations(right.losses, losses)) < AGREEMENT
    assert max(conformance.deviations(right.movements, moved)) < AGREEMENT
