"""The conformance traces: a few steps of the cell's own loop on a small job.

The job's weights, order and data follow from the nonce.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from bench_protocol.catalogue import nonces, seeded
from bench_protocol.catalogue.layers import Dropout
from bench_protocol.catalogue.matrix import Cell, Precision
from bench_protocol.catalogue.workloads import SGD, Workload
from bench_protocol.payload.result import Trace
from bench_protocol.recompute import figures
from bench_protocol.training import conformance
from bench_protocol.training.recomputation import trace_jobs, trace_reference

from ..engines.seam import Data, Engine
from . import witness

# Under this rate no float32 weight moves.
STILL = SGD(learning_rate=1e-30, momentum=0.0)
# A relative difference. The same masks give the same loss, to 1e-7. Other masks move it by a
# standard deviation of 5e-3 (fashion-mlp, n = 40), 6e-3 (fashion-cnn, n = 40) or 3e-4
# (cifar100-vgg16, n = 22).
SAME_LOSS = 2e-6
STILL_STEPS = (1, 2, 3, 4, 5)


def all_of(engine: Engine, workload: Workload, cell: Cell, nonce: str) -> tuple[Trace, ...]:
    """The short traces and, where a step is small, the long one."""
    traces = both(engine, workload, cell, nonce)
    if conformance.is_long_traced(workload):
        traces += (trace(engine, workload, cell, "long", cell.precision, nonce),)
    return traces


def both(engine: Engine, workload: Workload, cell: Cell, nonce: str) -> tuple[Trace, ...]:
    """The trace under SGD and the one under the workload's own optimiser, of a cell in mixed
    precision also in float32; see :func:`trace`."""
    return tuple(
        trace(engine, workload, cell, optimizer, precision, nonce)
        for precision in conformance.traced_precisions(cell.precision)
        for optimizer in conformance.TRACED
    )


def trace(
    engine: Engine,
    workload: Workload,
    cell: Cell,
    purpose: conformance.TracedOptimizer | Literal["long"],
    precision: Precision,
    nonce: str,
) -> Trace:
    """Train a trace with the cell's recipe, dropout off.

    Args:
        engine: loaded for the cell's device and precision.
        purpose: ``long``: many steps in one call, over an epoch's end, under SGD. Otherwise the
            optimiser; then the steps are trained one by one.
        nonce: of the challenge, or the agent's own.
    """
    long = purpose == "long"
    optimizer = "sgd" if purpose == "long" else purpose
    count = conformance.trace_batches(workload, purpose)
    readings = conformance.LONG_STEPS if long else range(1, count + 1)
    traced = conformance.trace_workload(workload, optimizer, count)
    batch_size = conformance.trace_batch_size(workload)
    seed = nonces.seed_of(nonce, workload.digest, purpose)
    train_x, train_y = seeded.generated_data(traced.data_set, "train", seed=seed)
    test_x, test_y = seeded.generated_data(traced.data_set, "test", seed=seed)
    epochs = -(-readings[-1] // traced.steps_per_epoch(batch_size))
    first, *later = (seeded.order(len(train_y), epoch, seed) for epoch in range(epochs))
    session = engine.open(
        traced,
        cell.model_copy(update={"batch_size": batch_size, "precision": precision}),
        conformance.trace_weights(traced, seed),
        Data(train_x, train_y, test_x, test_y, first, tuple(later)),
    )
    try:
        # One call between two readings.
        losses = witness.losses_after(session, readings)
        moved = witness.movements(session, traced, conformance.trace_weights(traced, seed))
    finally:
        session.close()
    return Trace(
        optimizer=optimizer,
        batch_size=batch_size,
        seed=seed,
        losses=losses,
        steps=conformance.LONG_STEPS if long else (),
        movements=moved,
        precision=None if precision == cell.precision else precision,
    )


def judged(
    cell: Cell,
    workload: Workload,
    traces: Sequence[Trace],
    architecture: str,
    nonce: str,
) -> conformance.ConformanceVerdict:
    """Compare the short traces with their recomputation.

    Large workloads are recomputed by the server alone.

    Args:
        architecture: of the machine's processor.
    """
    if not traces or not conformance.is_long_traced(workload):
        return conformance.ConformanceVerdict("unverified", "the server recomputes the traces")
    return conformance.verdict(cell, workload, traces, recomputed(workload, nonce), architecture)


def recomputed(workload: Workload, nonce: str) -> conformance.References:
    return {
        optimizer: trace_reference(job, figures(workload, optimizer, nonce, job.batch_size))
        for job in trace_jobs(workload, nonce)
        for optimizer in conformance.TRACED
        if optimizer == job.purpose
    }


def masks_change(engine: Engine, workload: Workload, cell: Cell) -> bool:
    """Whether the cell's step draws other dropout masks in each step; true without dropout.

    Five steps train the same batch and move no weight, so that only masks change the loss. The
    weights are those of a trace: from a workload's own, all outputs of a deep network are so close
    to zero that masks do not change the loss.
    """
    if not any(isinstance(layer, Dropout) for layer in workload.layers):
        return True
    batch_size = conformance.trace_batch_size(workload)
    fields = {name: getattr(workload, name) for name in Workload.model_fields}
    samples = {"train_samples": batch_size, "test_samples": 1, "noise": False}
    data_set = workload.data_set.model_copy(update=samples)
    still = Workload(**fields | {"data_set": data_set, "optimizer": STILL})
    order = np.arange(batch_size, dtype=np.int32)
    train, test = (seeded.generated_data(data_set, part) for part in ("train", "test"))
    session = engine.open(
        still,
        cell.model_copy(update={"batch_size": batch_size}),
        conformance.trace_weights(still, seeded.DEFAULT_SEED),
        Data(*train, *test, order, (order, order)),
    )
    try:
        return losses_change([loss or 0.0 for loss in witness.losses_after(session, STILL_STEPS)])
    finally:
        session.close()


def losses_change(losses: Sequence[float]) -> bool:
    """Whether at most one loss equals the one before it.

    Honest masks give two equal losses by chance. Two such pairs among five losses are seen in fewer
    than 2 of 10,000 honest runs of ``cifar100-vgg16`` and fewer of other workloads, if losses are
    normal.
    """
    same = [abs(after - before) <= SAME_LOSS * before for before, after in pairwise(losses)]
    return sum(same) < 2
