"""The witness: evidence of training, read from the timed session (docs/methodology.md).

Everything is read after the last block: nothing is added to a block. Last of all the session makes
its readings: it trains parts of its job again, in calls as long as the blocks.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Measurement
from bench_protocol.payload.witness import Movements, Reading, Witness, trained_tensors
from bench_protocol.training.reading import DEEP, WITH_DROPOUT, Part, parts

from ..engines.seam import Data, Session, Start

Timed = Callable[[Callable[[], object]], int]


def read(
    session: Session,
    workload: Workload,
    cell: Cell,
    seed: str,
    data: Data,
    steps_per_call: int,
    timed: Timed,
) -> Witness:
    """The witness of a session whose last block has ended.

    Args:
        seed: of the starting weights. They are generated again: no copy is kept during the timing.
        steps_per_call: of a timed block.
        timed: runs a function and returns its nanoseconds.
    """
    weights = seeded.initial_weights(workload, seed)
    steps, moved = session.step_count(), movements(session, workload, weights)
    starts = [
        (part, _start(workload, weights, part, seed))
        for part in parts(workload, cell.batch_size, seed)
    ]
    (first, start), *_ = starts
    session.restart(start)
    rows = start.orders[0][first.first * cell.batch_size :][: cell.batch_size]
    start_loss, _ = session.evaluate(data.train_x[rows], data.train_y[rows])
    return Witness(
        step_count=steps,
        counted_by=session.counted_by,
        movements=moved,
        start_loss=finite(start_loss),
        readings=tuple(
            _reading(session, workload, part, start, steps_per_call, timed)
            for part, start in starts
        ),
    )


def _start(workload: Workload, weights: seeded.Weights, part: Part, seed: str) -> Start:
    samples = workload.data_set.train_samples
    orders = tuple(seeded.order(samples, epoch, seed) for epoch in range(part.epochs))
    return Start(weights, orders, part.first, part.kind in WITH_DROPOUT, part.kind == "first")


def _reading(
    session: Session,
    workload: Workload,
    part: Part,
    start: Start,
    steps_per_call: int,
    timed: Timed,
) -> Reading:
    """Train the steps of each call, timed as a block is."""

    def train(steps: int) -> None:
        session.train_block(steps)
        session.sync()

    session.restart(start)
    if part.kind in DEEP:  # a first step compiles what the restart has changed
        train(1)
        session.restart(start)
    session.sync()
    calls = part.calls(steps_per_call)
    durations_ns = tuple(max(1, timed(partial(train, steps))) for steps in calls)
    return Reading(
        loss=finite(session.loss()),
        movements=movements(session, workload, start.weights),
        durations_ns=durations_ns,
    )


def untimed(action: Callable[[], object]) -> int:
    """Run a function; its time does not matter."""
    action()
    return 1


def counts_all_steps(measurement: Measurement) -> bool:
    """Whether the session's step count equals the requested steps.

    Under a dynamic loss scale Keras leaves out the updates whose gradients overflow.
    """
    recorded, blocks = measurement.witness, measurement.blocks
    if recorded is None:
        return True
    expected = 1 + blocks.warm_up_steps + blocks.steps
    if measurement.recipe_settings.get("loss_scale") == "dynamic":
        return recorded.step_count <= expected
    return recorded.step_count == expected


def movements(session: Session, workload: Workload, start: seeded.Weights) -> Movements:
    """|w - w_0| of each trained tensor, in the catalogue's order."""
    norms = []
    for tensor, now in zip(trained_tensors(workload), session.trained_parameters(), strict=True):
        moved = now.astype(np.float64) - start[tensor.index][tensor.name]
        norms.append(finite(float(np.linalg.norm(moved))))
    return tuple(norms)


def finite(value: float) -> float | None:
    """The value, or None where it is no finite number."""
    return value if math.isfinite(value) else None
