"""Accuracy and loss of real sessions at several numbers of steps: what bands are chosen from.

Faults train wrongly on purpose, to see whether a band shows it. ``half_batch``: each step trains
half of its batch, as many steps. ``frozen_first``: the first layer with weights keeps them.
"""

from statistics import fmean
from typing import NamedTuple

from bench_agent import engines
from bench_agent.engines.seam import Data, Session
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.workloads import Workload

SHARES = (1 / 64, 1 / 16, 1 / 4, 1 / 2, 1)
# A batch's loss is noisy: the mean of this many, read step by step, stands for the last loss.
LAST_BATCHES = 8
FAULTS = ("half_batch", "frozen_first")


class Point(NamedTuple):
    """After ``steps``: loss and accuracy on the test split, and the mean loss of the last
    batches."""

    steps: int
    loss: float
    accuracy: float
    last_loss: float


def curve(workload: Workload, cell: Cell, seed: str, fault: str | None = None) -> list[Point]:
    """Train as a timed session does, and evaluate at each share of the workload's steps.

    A share with less than ``LAST_BATCHES`` more steps than the one before is left out.
    """
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
            if mark - done < LAST_BATCHES:
                continue
            session.train_block(mark - done - LAST_BATCHES)
            last_loss = fmean(_single_steps(session))
            done = mark
            loss, accuracy = session.evaluate(*test)
            points.append(Point(mark, round(loss, 4), round(accuracy, 4), round(last_loss, 4)))
    finally:
        session.close()
    return points


def _single_steps(session: Session) -> list[float]:
    losses = []
    for _ in range(LAST_BATCHES):
        session.train_block(1)
        session.sync()
        losses.append(session.loss())
    return losses


def _with_frozen_first(workload: Workload) -> Workload:
    shapes = zip(workload.layers, workload.shapes[:-1], strict=True)
    first = next(n for n, (layer, inputs) in enumerate(shapes) if layer.weight_shapes(inputs))
    fields = {name: getattr(workload, name) for name in Workload.model_fields}
    return Workload(**{**fields, "frozen_layers": max(first + 1, workload.frozen_layers)})
