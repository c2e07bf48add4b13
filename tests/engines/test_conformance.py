"""Conformance: every engine and recipe agrees with the recomputation; the trace's data is
learnable."""

import math
from functools import cache

import pytest
from tests.fakes.workloads import cell_of

from bench_agent import engines
from bench_agent.engines.seam import Data, Engine
from bench_agent.worker import conformance_trace
from bench_protocol.catalogue import nonces, seeded
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.matrix import Cell, Recipe
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.recompute import figures
from bench_protocol.training import conformance

from .conftest import installed
from .loops import every_pair, every_pair_with

LARGE = ("cifar100-vgg16", "resnet50-transfer")
SMALL = [workload.name for workload in CATALOGUE if workload.name not in LARGE]


NONCE = "5e" * 32


def loaded(workload: Workload, cell: Cell) -> Engine:
    engine = installed(cell.framework)
    engine.load(workload, cell)
    return engine


@cache
def recomputed(name: str, nonce: str) -> conformance.References:
    return conformance_trace.recomputed(workload_named(name), nonce)


def check(framework: str, recipe: Recipe, name: str, nonce: str) -> None:
    """Traces trained under a nonce agree with its recomputation."""
    workload = workload_named(name)
    cell = cell_of(workload, framework, recipe)
    traces = conformance_trace.both(loaded(workload, cell), workload, cell, nonce)
    verdict = conformance.verdict(cell, workload, traces, recomputed(name, nonce))
    assert verdict.kind == "conformant", verdict


@every_pair_with(SMALL)
def test_it_conforms(framework: str, recipe: Recipe, name: str) -> None:
    check(framework, recipe, name, NONCE)


BATCHES = 5
# Under these nonces rounding decides a ReLU or a maximum: a movement is off by 1.6e-2, by 1.4e-2
# and by 4e-4, a loss by 7e-5 and by 2e-5; in TensorFlow the loss under SGD by 1.4e-5.
KINKED = (
    (
        "tensorflow",
        "mnist-dense",
        "c3fdedd12dafc4142b62a9e73ce37eb9d77b39cc6f931924621ace66d393f96f",
    ),
    ("torch", "mnist-cnn", "27b80700cb0bd25ba7c7601dbc14c187a9fe292c0e35cfebd1544cdb740f7383"),
    ("mlx", "mnist-cnn", "3fcd793f667ad565a3f748a4f26a4cb7f4f52b13992a78a2e4ac20953dc00ca8"),
    ("torch", "fashion-mlp", "78e7d704a84aad94c429a9e7019d4921f86b71169903efbc67f93a0a2ab53ad6"),
    ("torch", "fashion-mlp", "f88bd7605d0bd4dd1f37572d10d6ab76b42181a6d080a139d4576b1eadefcb70"),
    (
        "torch",
        "fashion-convnet",
        "58d87f0851a08a5899d052e88f3c21bf2a0032dd931f5177d9e0d801e16b49bf",
    ),
)


@pytest.mark.parametrize(("framework", "name", "nonce"), KINKED)
def test_what_rounding_decides_is_no_wrong_result(framework: str, name: str, nonce: str) -> None:
    check(framework, "naive", name, nonce)


@pytest.mark.long
@every_pair
@pytest.mark.parametrize("name", LARGE)
def test_a_large_one_conforms(framework: str, recipe: Recipe, name: str) -> None:
    check(framework, recipe, name, NONCE)


@pytest.mark.parametrize(
    ("framework", "name"),
    [
        # VGG16 is large only: its layers are those of the small ones.
        pytest.param(framework, name, marks=[] if name != LARGE[0] else pytest.mark.long)
        for framework in engines.names()
        for name in LARGE
    ],
)
def test_a_large_one_begins_right(
    framework: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two steps of the SGD trace: the second has gone through gradients and update."""
    workload = workload_named(name)
    cell = cell_of(workload, framework, "tuned")
    engine = loaded(workload, cell)
    monkeypatch.setattr(conformance, "trace_steps", lambda workload, optimizer: 2)
    trace = conformance_trace.trace(engine, workload, cell, "sgd", "float32", NONCE)
    right = figures(workload, "sgd", NONCE, trace.batch_size)
    assert trace.losses == pytest.approx(right.losses, rel=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_the_loss_falls_on_the_traces_data(name: str) -> None:
    """Over ten epochs: a trace with a constant loss of ln(classes) would agree with anything."""
    workload = workload_named(name)
    engine = loaded(workload, cell_of(workload, "mlx"))
    traced = conformance.trace_workload(workload, "workload", BATCHES)
    seed = nonces.seed_of(NONCE, workload.digest, "workload")
    batch = conformance.trace_batch_size(workload)
    data = Data(
        *seeded.generated_data(traced.data_set, "train"),
        *seeded.generated_data(traced.data_set, "test"),
        seeded.order(traced.data_set.train_samples, 0, seed),
    )
    cell = cell_of(workload, "mlx", "tuned", batch)
    session = engine.open(traced, cell, conformance.trace_weights(traced, seed), data)
    before, _ = session.evaluate(data.train_x, data.train_y)
    session.train_block(10 * BATCHES)
    session.sync()
    after, _ = session.evaluate(data.train_x, data.train_y)
    session.close()
    assert before == pytest.approx(math.log(workload.data_set.classes), rel=0.3)
    assert after < 0.7 * before
