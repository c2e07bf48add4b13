"""The table of all checks of a result: pure functions of the result and of its recomputation.
Checks of its challenge and clocks are in :mod:`.submission`.

A failed check never refuses a result: it is kept and shown with the reason. Effects of a failure:

=============  ===============================================================================
``unranked``   it is certainly wrong, and does not count
``quarantined``  it may be new hardware or an invention: the operator looks before it counts
``stale``      nothing shows that it was measured just now: trust level 1, and it does not count
``doubtful``   it counts, at trust level 2 at most
=============  ===============================================================================

Adding a check is adding a row to ``CHECKS``. Its effect is fixed, or follows from its finding. The
checks run whenever a result is projected, at a reindex and an audit, so each is a matter of
microseconds.
"""

from collections.abc import Callable

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.payload import block_times
from bench_protocol.payload.result import Measured, Result
from bench_protocol.training.recomputation import Known

from . import bounds
from . import evidence as evidence_checks
from . import machine as machine_checks
from . import timing as timing_checks
from . import training as training_checks
from . import witness as witness_checks
from .case import Case
from .verdicts import CheckVerdict, Effect, EffectOf, Finding


def of_result(
    result: Result, known: Known | None = None, bound: bool = True
) -> tuple[CheckVerdict, ...]:
    """``known``: recomputations; ``bound``: whether a fresh challenge of this server binds it."""
    if result.measurement is None:
        return ()
    workload = workload_named(result.cell.workload)
    case = Case(result, result.measurement, workload, known or {}, bound)
    return tuple(CheckVerdict.of(name, effect, check(case)) for name, effect, check in CHECKS)


def failure(result: Result) -> str | None:
    """Why a result that is no measurement does not count, or None if it is one."""
    if isinstance(result.outcome, Measured):
        return None
    if result.outcome.kind == "too_busy":
        return block_times.too_busy(result) or "too busy to measure"
    kind = result.outcome.kind.replace("_", " ")
    return f"{kind} during {result.outcome.phase.replace('_', '-')}"


CHECKS: tuple[tuple[str, Effect | EffectOf, Callable[[Case], Finding]], ...] = (
    ("parameter_count", "unranked", training_checks.parameter_count),
    ("finite_loss", "unranked", training_checks.finite_loss),
    ("placement", "unranked", machine_checks.placement),
    ("device_listed", "unranked", machine_checks.device_listed),
    ("consistent", "unranked", machine_checks.consistent),
    ("batch_fits", "unranked", machine_checks.batch_fits),
    ("times_fit", "unranked", timing_checks.times_fit),
    ("evidence", "unranked", evidence_checks.evidence),
    ("data_digest", "unranked", evidence_checks.data_digest),
    ("window", timing_checks.window_effect, timing_checks.window),
    ("steps", "unranked", witness_checks.steps),
    ("witness", witness_checks.wrong_or_doubtful, witness_checks.witness),
    ("pace", timing_checks.pace_effect, timing_checks.pace),
    ("possible_speed", "unranked", bounds.possible_speed),
    ("accuracy", "unranked", training_checks.right_accuracy),
    ("below_peak", "quarantined", bounds.below_peak),
    ("own_product", bounds.own_product_effect, bounds.own_product),
    ("mean_over_median", timing_checks.mean_over_median_effect, timing_checks.mean_over_median),
    ("falling_loss", training_checks.falling_loss_effect, training_checks.falling_loss),
    ("energy", "doubtful", machine_checks.energy),
)
NAMES = frozenset(name for name, _, _ in CHECKS)
