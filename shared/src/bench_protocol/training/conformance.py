"""Conformance of a training: loss traces, their tolerances, verdict.

A trace is the losses of a few single steps on a small job, and how far each weight moved: the
workload without dropout on a few batches. Two optimisers are traced: SGD with momentum, which tests
kernels and gradients without amplifying rounding, and the workload's own. The job's seed follows
from a nonce (:mod:`bench_protocol.catalogue.nonces`), and its figures are recomputed in float64
(:mod:`bench_protocol.recompute`).
"""

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..base import format as people
from ..catalogue import architectures
from ..catalogue.layers import Conv2D, Dense, Dropout
from ..catalogue.matrix import Cell, Precision
from ..catalogue.workloads import SGD, Workload
from ..payload.result import Trace
from .recomputed import Figures
from .trace_limits import (
    LEAST_MOVEMENT,
    MOST_STEPS,
    TOLERANCES,
    is_deep,
    loss_limits,
    movement_limit,
    widened,
)

if TYPE_CHECKING:
    from ..catalogue.seeded import Weights

TracedOptimizer = Literal["sgd", "workload"]
TRACED: tuple[TracedOptimizer, ...] = ("sgd", "workload")
TRACE_SGD = SGD(learning_rate=0.01, momentum=0.9)
# A deep network amplifies rounding under its own optimiser, so its trace has fewer steps.
DEEP_STEPS = 2
# A step of a short trace costs at most about this much where a small batch is enough for that.
MOST_STEP_FLOPS = 4e10
LARGEST_BATCH, SMALLEST_BATCH = 32, 4
# The long trace, under SGD: after how many steps the loss is read, with one call between two
# readings, and the batches of an epoch. The second call is longer than any unrolled body (16), the
# third goes over the epoch's end. All of its epochs have the orders of the seed.
MOST_LONG_FLOPS = 2e11
LONG_STEPS = (1, 18, 24)
LONG_BATCHES = 20


def traced_precisions(precision: Precision) -> tuple[Precision, ...]:
    """The precisions of a cell's short traces.

    Limits of mixed precision are wide. The same engine's layers and optimiser also train in
    float32, where limits are tight.
    """
    return (precision, "float32") if precision.startswith("mixed_") else (precision,)


def trace_batch_size(workload: Workload) -> int:
    """Samples of a step: a power of two, fewer for large workloads."""
    batch = LARGEST_BATCH
    step_flops = workload.training_flops_per_sample
    while batch > SMALLEST_BATCH and batch * step_flops > MOST_STEP_FLOPS:
        batch //= 2
    return batch


def trace_steps(workload: Workload, optimizer: TracedOptimizer) -> int:
    """Steps of a short trace."""
    return DEEP_STEPS if optimizer == "workload" and is_deep(workload) else MOST_STEPS


def trace_batches(workload: Workload, purpose: TracedOptimizer | Literal["long"]) -> int:
    """Batches of an epoch of a trace."""
    return LONG_BATCHES if purpose == "long" else trace_steps(workload, purpose)


def is_long_traced(workload: Workload) -> bool:
    """Whether a workload's steps are small enough for the long trace."""
    samples = trace_batch_size(workload) * LONG_STEPS[-1]
    return samples * workload.training_flops_per_sample <= MOST_LONG_FLOPS


def trace_workload(workload: Workload, optimizer: TracedOptimizer, batches: int) -> Workload:
    """The traced form of a workload: without dropout, on a few batches of data that a few steps
    learn, with one pattern a class."""
    samples = trace_batch_size(workload) * batches
    fields = {name: getattr(workload, name) for name in Workload.model_fields}
    keeps = [not isinstance(layer, Dropout) for layer in workload.layers]
    fields["layers"] = tuple(
        layer for layer, keep in zip(workload.layers, keeps, strict=True) if keep
    )
    fields["frozen_layers"] = sum(keeps[: workload.frozen_layers])
    fields["data_set"] = workload.data_set.model_copy(
        update={
            "train_samples": samples,
            "test_samples": 1,
            "patterns": workload.data_set.classes,
            "noise": False,
        }
    )
    if optimizer == "sgd":
        fields["optimizer"] = TRACE_SGD
    return Workload(**fields)


def trace_weights(traced: Workload, seed: str) -> "Weights":
    """Starting weights of a trace: kernels before a ReLU are sqrt(2) larger than the workload's.

    A ReLU halves the mean square (He et al. 2015): without the factor the signal of a deep network
    fades until the loss is ln(classes) for any computation, and all computations agree.
    """
    import numpy as np  # here: the server never computes traces

    from ..catalogue.seeded import initial_weights

    weights = initial_weights(traced, seed)
    for layer, values in zip(traced.layers, weights, strict=True):
        if isinstance(layer, Conv2D | Dense) and layer.activation == "relu":
            values["kernel"] = values["kernel"] * np.float32(math.sqrt(2))
    return weights


@dataclass(frozen=True)
class Reference:
    """The recomputed figures of a trace, and the job that they are of."""

    batch_size: int
    seed: str
    figures: Figures


@dataclass(frozen=True)
class ConformanceVerdict:
    """The verdict on traces. ``deviation``: the largest relative one of a loss; infinite if a loss
    is missing. ``limit``: the largest deviation allowed of that loss."""

    kind: Literal["conformant", "wrong_result", "unverified"]
    reason: str
    deviation: float | None = None
    limit: float | None = None


References = Mapping[TracedOptimizer, Reference]
"""Of both short traces of a cell."""


def verdict(
    cell: Cell,
    workload: Workload,
    traces: Sequence[Trace],
    references: References,
    architecture: str = architectures.MEASURED,
) -> ConformanceVerdict:
    """Compare a cell's short traces, in each precision, with their recomputation.

    Returns:
        The verdict in the cell's own precision, unless those in another are wrong.

    Args:
        cell: its kind of device and precision count.
        traces: the worker's traces, in any order. The long one has a verdict of its own
            (:mod:`.long_trace`).
        references: of both optimisers.
        architecture: of the machine's processor. The tolerances of CPUs were measured on x86-64; on
            others a trace beyond them is unverified before it is wrong.
    """
    short: dict[Precision, list[Trace]] = {cell.precision: []}
    for trace in traces:
        if not trace.steps:
            short.setdefault(trace.precision or cell.precision, []).append(trace)
    own = _verdict(cell, workload, short.pop(cell.precision), references, architecture)
    if own.kind == "wrong_result":
        return own
    for precision, some in short.items():
        other = cell.model_copy(update={"precision": precision})
        found = _verdict(other, workload, some, references, architecture)
        if found.kind == "wrong_result":
            return replace(found, reason=f"in {precision} {found.reason}")
    return own


def _verdict(
    cell: Cell,
    workload: Workload,
    traces: Sequence[Trace],
    references: References,
    architecture: str,
) -> ConformanceVerdict:
    """The verdict on traces in the cell's precision."""
    by_optimizer = {trace.optimizer: trace for trace in traces}
    missing = [optimizer for optimizer in TRACED if optimizer not in by_optimizer]
    if missing:
        return ConformanceVerdict("unverified", f"not traced: {', '.join(missing)}")
    largest = (0.0, 0.0)
    measured = True
    beyond = None
    by_rounding = False
    for optimizer in TRACED:
        reference = references[optimizer]
        right = reference.figures
        trace = by_optimizer[optimizer]
        if not _comparable(trace, reference):
            return ConformanceVerdict("unverified", f"the {optimizer} trace belongs to another job")
        step_deviations = deviations(trace.losses, right.losses)
        table = TOLERANCES.get((cell.device.kind, cell.precision, optimizer))
        measured = measured and table is not None
        factor = architectures.wrong_beyond(cell.device.kind, architecture) if table else 1.0
        constant = loss_limits(workload, table, optimizer, len(right.losses))
        limits = widened(constant, right.rounding)
        by_rounding = by_rounding or any(map(operator.gt, step_deviations, constant))
        worst = max(zip(step_deviations, limits, strict=True))
        largest = max(largest, worst)
        for step, (deviation, limit) in enumerate(zip(step_deviations, limits, strict=True), 1):
            why = f"the {optimizer} trace is off by {people.deviation(deviation)} at step {step}"
            if not deviation <= factor * limit or deviation == math.inf:
                derived = "" if table and factor == 1 else " (derived, not measured)"
                allowed = f"{people.deviation(factor * limit)} is allowed{derived}"
                return ConformanceVerdict("wrong_result", f"{why}, {allowed}", *worst)
            if deviation > limit:
                beyond = (
                    beyond
                    or f"{why}, {people.deviation(limit)} was measured on {architectures.MEASURED}"
                )
        moved = _moved(workload, cell, optimizer, trace, right)
        if not moved.off <= factor * moved.limit or moved.off == math.inf:
            return ConformanceVerdict("wrong_result", moved.sentence, *worst)
        if moved.off > moved.limit:
            beyond = beyond or f"{moved.sentence}, measured on {architectures.MEASURED}"
        by_rounding = by_rounding or moved.by_rounding
    if not measured:
        why = f"no tolerance has been measured for {cell.device.kind} in {cell.precision}"
        return ConformanceVerdict("unverified", why, *largest)
    if beyond:
        return ConformanceVerdict("unverified", f"{beyond}, not on {architecture}", *largest)
    why = "both traces are within tolerance"
    if by_rounding:
        why += ", beyond the constant limits but within four times the effect of rounding"
    return ConformanceVerdict("conformant", why, *largest)


class _Moved(NamedTuple):
    """The relative deviation of the movement that is closest to its limit, or beyond it."""

    off: float
    limit: float
    sentence: str
    by_rounding: bool = False


def _moved(
    workload: Workload, cell: Cell, optimizer: TracedOptimizer, trace: Trace, right: Figures
) -> _Moved:
    """Compare the movements of a trace with the recomputed ones."""
    allowed = movement_limit(workload, cell.device.kind, cell.precision)
    if len(trace.movements) != len(right.movements):
        counts = f"{len(trace.movements)} movements of {len(right.movements)}"
        return _Moved(math.inf, allowed, f"the {optimizer} trace has {counts} trained tensors")
    off = deviations(trace.movements, right.movements, LEAST_MOVEMENT)
    limits = widened((allowed,) * len(off), right.movements_rounding)
    number, (worst, limit) = max(
        enumerate(zip(off, limits, strict=True), 1), key=lambda one: one[1][0] / one[1][1]
    )
    sentence = (
        f"in the {optimizer} trace the movement of trained tensor {number} is off by "
        f"{people.deviation(worst)}, {people.deviation(limit)} is allowed"
    )
    return _Moved(worst, limit, sentence, max(off) > allowed)


def deviations(
    losses: Sequence[float | None], reference: Sequence[float], floor: float = 1e-3
) -> list[float]:
    """Relative deviation of each value; infinite where it is not finite.

    Args:
        floor: the least denominator.
    """
    return [
        math.inf
        if loss is None or not math.isfinite(loss)
        else abs(loss - right) / max(abs(right), floor)
        for loss, right in zip(losses, reference, strict=True)
    ]


def _comparable(trace: Trace, reference: Reference) -> bool:
    return (
        trace.seed == reference.seed
        and trace.batch_size == reference.batch_size
        and len(trace.losses) == len(reference.figures.losses)
    )
