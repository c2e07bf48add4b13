"""Accuracy and loss of real sessions at several numbers of steps: what bands are chosen from.

Faults train wrongly on purpose, to see whether a band shows it. ``half_batch``: each step trains
half of its batch, as many steps. ``frozen_first``: the first layer with weights keeps them.
"""

from typing import NamedTuple

from bench_agent import engines
from bench_agent.engines.seam import Data
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.workloads import Workload

SHARES = (1 / 64, 1 / 16, 1 / 4, 1 / 2, 1)
FAULTS = ("half_batch", "frozen_first")


class Point(NamedTuple):
    """Loss and accuracy on the test split after ``steps``."""

    steps: int
    loss: float
    accuracy: float


def curve(workload: Workload, cell: Cell, seed: str, fault: str | None = None) -> list[Point]:
    """Train as a timed session does, and evaluate at each share of the workload's steps."""
    steps = workload.epochs * workload.steps_per_epoch(workload.batch_size)
    if fault == "frozen_first":
        workload = _with_frozen_first(workload)
    if fault == "half_batch":
        cell = cell.model_copy(update={"batch_size": cell.batch_size // 2})
    engine = engines.engine_named(cell.framework)
    engine.load(workload, cell)
    train = seeded.generated_data(workload.data_set, "train")
    test = seeded.generated_data(workload.data_set, "test")
    order = seeded.order(len(train[1]), 0, seed)
    weights = seeded.initial_weights(workload, seed)
    session = engine.open(workload, cell, weights, Data(*train, *test, order))
    points: list[Point] = []
    done = 0
    try:
        for mark in (int(steps * share) for share in SHARES):
            if mark == done:
                continue
            session.train_block(mark - done)
            done = mark
            loss, accuracy = session.evaluate(*test)
            points.append(Point(mark, round(loss, 4), round(accuracy, 4)))
    finally:
        session.close()
    return points


def _with_frozen_first(workload: Workload) -> Workload:
    shapes = zip(workload.layers, workload.shapes[:-1], strict=True)
    first = next(n for n, (layer, inputs) in enumerate(shapes) if layer.weight_shapes(inputs))
    fields = {name: getattr(workload, name) for name in Workload.model_fields}
    return Workload(**{**fields, "frozen_layers": max(first + 1, workload.frozen_layers)})
