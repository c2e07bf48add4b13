"""The loops by hand that ``make benchmark-recipes`` sets beside ``tuned`` train each workload's
model."""

import importlib
import math
from functools import partial
from pathlib import Path

import pytest

from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.workloads import Workload

LOOPS = Path(__file__).parents[2] / "benchmarks" / "bare_loops"


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(LOOPS))


@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda workload: workload.name)
def test_pytorchs_modules_have_the_weights_and_the_output_of_the_list(workload: Workload) -> None:
    torch = pytest.importorskip("torch")
    loops = importlib.import_module("layers_torch")
    net = loops.chain(workload.layers, workload.shapes[0]).eval()
    shape = workload.shapes[0]
    x = torch.zeros(2, *(shape if len(shape) < 3 else (shape[2], *shape[:2])))
    x = x.long() if workload.data_set.tokens else x
    assert net(x).shape == (2, *workload.shapes[-1])
    named = net.state_dict().items()
    count = sum(value.numel() for name, value in named if "bias_hh" not in name)
    assert count == workload.parameter_count


@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda workload: workload.name)
def test_jaxs_functions_have_the_weights_and_the_output_of_the_list(workload: Workload) -> None:
    jax = pytest.importorskip("jax")
    loops, inputs = importlib.import_module("layers_jax"), workload.shapes[0]
    made, kept = loops.weights(workload.layers, inputs), loops.running(workload.layers, inputs)
    sizes = [value.shape for value in jax.tree.leaves((made, kept))]
    assert sum(map(math.prod, sizes)) == workload.parameter_count
    x = jax.numpy.zeros((2, *inputs), "int32" if workload.data_set.tokens else "float32")
    forward, seen = partial(loops.forward, workload.layers), []
    out = jax.eval_shape(lambda made, x: forward(made, x, jax.random.key(0), seen), made, x)
    assert out.shape == (2, *workload.shapes[-1])
    assert [[one.shape for one in pair] for pair in seen] == [
        [one.shape for one in pair] for pair in kept
    ]
