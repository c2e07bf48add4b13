"""The figures of a job whose seed follows from a nonce."""

from collections.abc import Sequence

from .. import conformance
from ..nonces import Purpose
from ..recomputed import Figures
from ..witness_steps import witness_steps
from ..workloads import Workload
from .band import witness_band
from .training import Split, nonce_job, recompute


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
    if purpose != "timed":
        right = recompute(job, conformance.seeded_steps(workload, purpose))
        losses = _rounded(right.losses)
        movements = _rounded(right.movements)
        return Figures(losses=losses, movements=movements, start_loss=losses[0])
    band = witness_band(job, witness_steps(workload, batch_size)[-1], split=split)
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


def _rounded(values: Sequence[float]) -> tuple[float, ...]:
    """To ten digits: what differs between processors is below that."""
    return tuple(float(f"{value:.10g}") for value in values)
