"""The conformance trace: a few steps of the cell's own loop on the trace's fixed small job."""

import math

from bench_protocol import conformance, seeded
from bench_protocol.matrix import Cell
from bench_protocol.result import Trace
from bench_protocol.workloads import Workload

from ..engines.seam import Data, Engine


def has_reference(workload: Workload) -> bool:
    """Whether there is a reference trace of this workload."""
    references = conformance.references()
    return all((workload.digest, optimizer) in references for optimizer in conformance.TRACED)


def both(engine: Engine, workload: Workload, cell: Cell) -> tuple[Trace, ...]:
    """The trace under SGD and the one under the workload's own optimiser; see :func:`trace`."""
    return tuple(trace(engine, workload, cell, optimizer) for optimizer in conformance.TRACED)


def trace(
    engine: Engine, workload: Workload, cell: Cell, optimizer: conformance.TracedOptimizer
) -> Trace:
    """Train the trace's steps one by one with the cell's recipe and precision, dropout off.

    Args:
        engine: loaded for the cell's device and precision.
    """
    traced = conformance.trace_workload(workload, optimizer)
    reference = conformance.references()[workload.digest, optimizer]
    batch_size = reference.batch_size
    train_x, train_y = seeded.generated_data(traced.data_set, "train")
    test_x, test_y = seeded.generated_data(traced.data_set, "test")
    order = seeded.order(len(train_y), 0, reference.seed)
    session = engine.open(
        traced,
        cell.model_copy(update={"batch_size": batch_size}),
        conformance.trace_weights(traced, reference.seed),
        Data(train_x, train_y, test_x, test_y, order),
    )
    try:
        losses = []
        for _ in range(conformance.STEPS):
            session.train_block(1)
            session.sync()
            losses.append(session.loss())
    finally:
        session.close()
    return Trace(
        optimizer=optimizer,
        batch_size=batch_size,
        seed=reference.seed,
        losses=tuple(loss if math.isfinite(loss) else None for loss in losses),
    )
