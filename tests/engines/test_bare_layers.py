"""The loops by hand that ``make benchmark-recipes`` sets beside ``tuned`` train each workload's
model."""

import importlib
import math
from functools import partial
from pathlib import Path

import pytest

from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.modern import MODERN
from bench_protocol.catalogue.workloads import Workload

LOOPS = Path(__file__).parents[2] / "benchmarks" / "bare_loops"


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(LOOPS))


@pytest.mark.parametrize(
    "workload", dict.fromkeys((*CATALOGUE, *MODERN)), ids=lambda workload: workload.name
)
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
    loops = importlib.import_module("layers_jax")
    made = loops.weights(workload.layers, workload.shapes[0])
    sizes = [value.shape for value in jax.tree.leaves(made)]
    assert sum(map(math.prod, sizes)) == workload.parameter_count
    x = jax.numpy.zeros((2, *workload.shapes[0]))
    out = jax.eval_shape(partial(loops.forward, workload.layers), made, x, jax.random.key(0))
    assert out.shape == (2, workload.data_set.classes)
