"""Planted faults: each moves a trace out of tolerance. ``make faults`` plants more."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.fakes.workloads import cell_of, variant

from bench_agent.engines import engine_named
from bench_agent.engines.seam import Data, Session
from bench_agent.worker import conformance_trace
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.layers import Conv2D, Dense, Dropout
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.training import conformance

Job = tuple[Workload, Weights, Data]
Change = Callable[[Workload, Weights, Data], Job]
NONCE = "5e" * 32


@dataclass
class Faulty:
    """MLX with a changed job."""

    change: Change

    def open(self, workload: Workload, cell: Cell, weights: Weights, data: Data) -> Session:
        workload, weights, data = self.change(workload, weights, data)
        return engine_named("mlx").open(workload, cell, weights, data)


def must_be_caught(name: str, change: Change = lambda *job: job) -> None:
    """The traces of a workload under a fault, on a CPU in float32, are wrong."""
    workload = workload_named(name)
    cell = cell_of(workload, "mlx")
    engine_named("mlx").load(workload, cell)
    engine: Any = Faulty(change)
    traces = conformance_trace.both(engine, workload, cell, NONCE)
    references = conformance_trace.recomputed(workload, NONCE)
    verdict = conformance.verdict(cell, workload, traces, references)
    assert verdict.kind == "wrong_result", verdict
    assert verdict.deviation is not None
    # Far from the tolerance, so that the test does not depend on luck.
    assert verdict.deviation > 1e-4, verdict


def without_relu(kind: type[Conv2D | Dense]) -> Change:
    def change(workload: Workload, weights: Weights, data: Data) -> Job:
        layers = list(workload.layers)
        index = next(n for n, layer in enumerate(layers) if isinstance(layer, kind))
        layers[index] = layers[index].model_copy(update={"activation": "linear"})
        return variant(workload, layers=tuple(layers)), weights, data

    return change


def epsilon(workload: Workload, weights: Weights, data: Data) -> Job:
    if workload.optimizer.kind == "sgd":
        return workload, weights, data
    optimizer = workload.optimizer.model_copy(update={"epsilon": 1e-3})
    return variant(workload, optimizer=optimizer), weights, data


def forget_bias_zero(workload: Workload, weights: Weights, data: Data) -> Job:
    return workload, [{**weights[0], "bias": 0 * weights[0]["bias"]}, *weights[1:]], data


def gates(*order: int) -> Change:
    def change(workload: Workload, weights: Weights, data: Data) -> Job:
        swapped = {}
        for name, values in weights[0].items():
            parts = np.split(values, 4, axis=-1)
            swapped[name] = np.concatenate([parts[gate] for gate in order], axis=-1)
        return workload, [swapped, *weights[1:]], data

    return change


def dropout_on(workload: Workload, weights: Weights, data: Data) -> Job:
    layers = workload_named("fashion-mlp").layers
    rest = iter(weights)
    all_weights = [{} if isinstance(layer, Dropout) else next(rest) for layer in layers]
    return variant(workload, layers=layers), all_weights, data


def on_data(change: Callable[[Data], Data]) -> Change:
    return lambda workload, weights, data: (workload, weights, change(data))


BATCH = conformance.trace_batch_size(workload_named("mnist-dense"))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param(name, change, id=fault)
        for fault, name, change in (
            ("no ReLU after a convolution", "mnist-cnn", without_relu(Conv2D)),
            ("no ReLU after a dense layer", "mnist-cnn", without_relu(Dense)),
            ("epsilon of RMSprop", "mnist-cnn", epsilon),
            ("epsilon of Adam", "fashion-mlp", epsilon),
            ("forget bias of zero", "fashion-lstm", forget_bias_zero),
            ("forget and cell gate swapped", "fashion-lstm", gates(0, 2, 1, 3)),
            ("cell and output gate swapped", "fashion-lstm", gates(0, 1, 3, 2)),
            ("dropout left on", "fashion-mlp", dropout_on),
            (
                "labels of another numbering",
                "mnist-dense",
                on_data(lambda data: replace(data, train_y=(data.train_y + 1) % 10)),
            ),
            (
                "another order of batches",
                "mnist-dense",
                on_data(lambda data: replace(data, order=np.roll(data.order, BATCH))),
            ),
        )
    ],
)
def test_a_changed_job_is_caught(name: str, change: Change) -> None:
    must_be_caught(name, change)


def test_padding_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the published MLX model does it; pooling hides the larger size."""
    import mlx.core as mx

    from bench_agent.engines.mlx import model

    def pad(x: Any) -> Any:
        return mx.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])

    monkeypatch.setattr(model, "_padding", lambda layer, shape: [pad])
    must_be_caught("fashion-cnn")


def test_adam_without_bias_correction(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlx import optimizers

    from bench_agent.engines.mlx import model

    right = model.optimizer

    def wrong(settings: Any) -> Any:
        if settings.kind != "adam":
            return right(settings)
        return optimizers.Adam(settings.learning_rate, eps=settings.epsilon)

    monkeypatch.setattr(model, "optimizer", wrong)
    must_be_caught("fashion-mlp")


@pytest.mark.parametrize("fault", ["bias after relu", "no bias"])
def test_a_wrong_fusion(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Product, bias and ReLU fused into an operation that puts the bias elsewhere."""
    from mlx import nn

    from bench_agent.engines.mlx import model

    right = model._parts

    class Fused(nn.Module):  # type: ignore[misc]
        def __init__(self, dense: Any) -> None:
            super().__init__()
            self.dense = dense

        def __call__(self, x: Any) -> Any:
            product = nn.relu(x @ self.dense.weight.T)
            return product + self.dense.bias if fault == "bias after relu" else product

    def wrong(layer: Any, shape: Any, values: Any) -> list[Any]:
        parts = right(layer, shape, values)
        if layer.kind == "dense" and layer.activation == "relu":
            return [Fused(parts[0])]
        return list(parts)

    monkeypatch.setattr(model, "_parts", wrong)
    must_be_caught("fashion-mlp")
