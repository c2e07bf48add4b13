"""Planted faults: each moves a trace out of tolerance."""

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


def same(workload: Workload, weights: Weights, data: Data) -> Job:
    return workload, weights, data


def verdict_of(name: str, change: Change = same) -> conformance.ConformanceVerdict:
    """The verdict on a workload's traces, on a CPU in float32."""
    workload = workload_named(name)
    cell = cell_of(workload, "mlx")
    engine_named("mlx").load(workload, cell)
    engine: Any = Faulty(change)
    traces = conformance_trace.both(engine, workload, cell, NONCE)
    return conformance.verdict(
        cell, workload, traces, conformance_trace.recomputed(workload, NONCE)
    )


def must_be_caught(verdict: conformance.ConformanceVerdict) -> None:
    assert verdict.kind == "wrong_result", verdict
    assert verdict.deviation is not None
    # Far from the tolerance, so that the test does not depend on luck.
    assert verdict.deviation > 1e-4, verdict


@pytest.mark.parametrize("name", ["mnist-cnn", "fashion-cnn", "fashion-mlp", "fashion-lstm"])
def test_without_a_fault_it_conforms(name: str) -> None:
    assert verdict_of(name).kind == "conformant"


@pytest.mark.parametrize("kind", [Conv2D, Dense])
def test_a_relu_is_missing(kind: type[Conv2D | Dense]) -> None:
    def change(workload: Workload, weights: Weights, data: Data) -> Job:
        layers = list(workload.layers)
        index = next(n for n, layer in enumerate(layers) if isinstance(layer, kind))
        layers[index] = layers[index].model_copy(update={"activation": "linear"})
        return variant(workload, layers=tuple(layers)), weights, data

    must_be_caught(verdict_of("mnist-cnn", change))


def test_padding_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the published MLX model does it; pooling hides the larger size."""
    import mlx.core as mx

    from bench_agent.engines.mlx import model

    def pad(x: Any) -> Any:
        return mx.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])

    monkeypatch.setattr(model, "_padding", lambda layer, shape: [pad])
    must_be_caught(verdict_of("fashion-cnn"))


def test_adam_without_bias_correction(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlx import optimizers

    from bench_agent.engines.mlx import model

    right = model.optimizer

    def wrong(settings: Any) -> Any:
        if settings.kind != "adam":
            return right(settings)
        return optimizers.Adam(settings.learning_rate, eps=settings.epsilon)

    monkeypatch.setattr(model, "optimizer", wrong)
    must_be_caught(verdict_of("fashion-mlp"))


@pytest.mark.parametrize("name", ["mnist-cnn", "fashion-mlp", "fashion-lstm"])
def test_epsilon(name: str) -> None:
    def change(workload: Workload, weights: Weights, data: Data) -> Job:
        if workload.optimizer.kind == "sgd":
            return workload, weights, data
        optimizer = workload.optimizer.model_copy(update={"epsilon": 1e-3})
        return variant(workload, optimizer=optimizer), weights, data

    must_be_caught(verdict_of(name, change))


def test_forget_bias_zero() -> None:
    def change(workload: Workload, weights: Weights, data: Data) -> Job:
        return workload, [{**weights[0], "bias": 0 * weights[0]["bias"]}, *weights[1:]], data

    must_be_caught(verdict_of("fashion-lstm", change))


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 1, 3, 2), (1, 0, 2, 3)])
def test_wrong_gate_order(order: tuple[int, ...]) -> None:
    def change(workload: Workload, weights: Weights, data: Data) -> Job:
        swapped = {}
        for name, values in weights[0].items():
            gates = np.split(values, 4, axis=-1)
            swapped[name] = np.concatenate([gates[gate] for gate in order], axis=-1)
        return workload, [swapped, *weights[1:]], data

    must_be_caught(verdict_of("fashion-lstm", change))


@pytest.mark.parametrize("name", ["fashion-cnn", "fashion-mlp"])
def test_dropout_left_on(name: str) -> None:
    layers = workload_named(name).layers

    def change(workload: Workload, weights: Weights, data: Data) -> Job:
        rest = iter(weights)
        all_weights = [{} if isinstance(layer, Dropout) else next(rest) for layer in layers]
        return variant(workload, layers=layers), all_weights, data

    must_be_caught(verdict_of(name, change))


def test_labels_shifted() -> None:
    def change(workload: Workload, weights: Weights, data: Data) -> Job:
        return workload, weights, replace(data, train_y=np.roll(data.train_y, 1))

    must_be_caught(verdict_of("mnist-dense", change))


def test_labels_of_another_numbering() -> None:
    def change(workload: Workload, weights: Weights, data: Data) -> Job:
        return workload, weights, replace(data, train_y=(data.train_y + 1) % 10)

    must_be_caught(verdict_of("mnist-dense", change))


@pytest.mark.parametrize("name", ["mnist-cnn", "fashion-mlp"])
@pytest.mark.parametrize("fault", ["bias after relu", "no bias"])
def test_a_wrong_fusion(name: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
    must_be_caught(verdict_of(name))


def test_batch_order_changed() -> None:
    def change(workload: Workload, weights: Weights, data: Data) -> Job:
        batch = conformance.trace_batch_size(workload_named("mnist-dense"))
        return workload, weights, replace(data, order=np.roll(data.order, batch))

    must_be_caught(verdict_of("mnist-dense", change))
