"""The figures of a job whose seed follows from a nonce."""

from collections.abc import Sequence
from functools import lru_cache

from ..catalogue import seeded
from ..catalogue.nonces import Purpose
from ..catalogue.workloads import DataSet, Workload
from ..training import conformance, trace_limits
from ..training.recomputed import Figures, Recomputed
from ..training.witness_steps import witness_steps
from .band import witness_band
from .rounding import rounding
from .training import Job, Split, nonce_job, recompute


def figures(
    workload: Workload,
    purpose: Purpose,
    nonce: str,
    batch_size: int,
    split: Split | None = None,
) -> Figures:
    """Recompute the steps of a trace, or those that a timed session's witness reads.

    Args:
        workload: as the catalogue has it.
        batch_size: of the trace or of the session.
        split: the training split of a session on real data; generated if not given.
    """
    job = nonce_job(workload, purpose, nonce, batch_size)
    if purpose == "timed":
        return _session(job, split)
    return _long_trace(job) if purpose == "long" else _short_trace(job)


@lru_cache(maxsize=16)
def generated_digest(data_set: DataSet) -> str:
    """The digest of a data set's generated samples."""
    names = ("train", *(["validation"] if data_set.validation_samples else []), "test")
    return seeded.data_digest(*(seeded.generated_data(data_set, name) for name in names))


def _long_trace(job: Job) -> Figures:
    right = recompute(job, conformance.LONG_STEPS[-1])
    losses = _rounded(right.losses)
    return Figures(losses=losses, movements=_rounded(right.movements), start_loss=losses[0])


def _short_trace(job: Job) -> Figures:
    right = recompute(job, conformance.trace_steps(job.workload, job.optimizer))
    nudged = rounding(job, right) if _rounding_matters(job) else Recomputed((), ())
    losses = _rounded(right.losses)
    return Figures(
        losses=losses,
        movements=_rounded(right.movements),
        start_loss=losses[0],
        rounding=_rounded(nudged.losses),
        movements_rounding=_rounded(nudged.movements),
    )


def _session(job: Job, split: Split | None) -> Figures:
    steps = witness_steps(job.workload, job.batch_size)[-1]
    band = witness_band(job, steps, split=split)
    low, high = _rounded(band.low.losses), _rounded(band.high.losses)
    moved = _rounded(band.low.movements)
    if high == low:
        return Figures(losses=low, movements=moved, start_loss=low[0])
    # The recomputation leaves dropout out unless it is given masks.
    (start_loss,) = _rounded(recompute(job, 1, split).losses)
    return Figures(
        losses=low,
        high=high,
        movements=moved,
        movements_high=_rounded(band.high.movements),
        start_loss=start_loss,
    )


def _rounding_matters(job: Job) -> bool:
    """Whether rounding can decide how far weights move, and the workload is small: a large one
    would take 50 s more."""
    return conformance.is_long_traced(job.workload) and trace_limits.has_kinks(job.workload)


def _rounded(values: Sequence[float]) -> tuple[float, ...]:
    """Round to ten digits: processors differ only in later digits."""
    return tuple(float(f"{value:.10g}") for value in values)
