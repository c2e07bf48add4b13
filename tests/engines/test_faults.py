"""Faults of layers that ``make faults`` does not plant: each moves a reading out of tolerance."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.fakes.workloads import cell_of

from bench_agent.engines.seam import Data, Start
from bench_protocol.catalogue.workloads import Workload

from .conftest import installed, tiny_data
from .test_reading import BATCH, WORKLOADS, deviation, recomputed, start, train

Job = tuple[Workload, Start, Data]
Change = Callable[[Workload, Start, Data], Job]


def must_be_caught(name: str, change: Change = lambda *job: job) -> None:
    right = WORKLOADS[name]
    workload, began, data = change(right, start(right), tiny_data(right))
    cell = cell_of(workload, "mlx", batch_size=BATCH)
    engine = installed("mlx")
    engine.load(workload, cell)
    session = engine.open(workload, cell, began.weights, data)
    # Far from the tolerance, so that the test does not depend on luck.
    assert deviation(train(session, workload, began), recomputed(right)) > 1e-3
    session.close()


def on_weights(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Change:
    def changed(workload: Workload, began: Start, data: Data) -> Job:
        first, *others = began.weights
        return workload, replace(began, weights=[change(first), *others]), data

    return changed


def gates(*order: int) -> Change:
    def change(values: dict[str, Any]) -> dict[str, Any]:
        parts = {name: np.split(value, 4, axis=-1) for name, value in values.items()}
        return {name: np.concatenate([p[gate] for gate in order], -1) for name, p in parts.items()}

    return on_weights(change)


def a_step_too_late(workload: Workload, began: Start, data: Data) -> Job:
    return workload, replace(began, first=began.first + 1), data


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param(name, change, id=fault)
        for fault, name, change in (
            (
                "forget bias of zero",
                "fashion-lstm",
                on_weights(lambda values: {**values, "bias": 0 * values["bias"]}),
            ),
            ("forget and cell gate swapped", "fashion-lstm", gates(0, 2, 1, 3)),
            ("cell and output gate swapped", "fashion-lstm", gates(0, 1, 3, 2)),
            ("a step too late", "mnist-dense", a_step_too_late),
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
