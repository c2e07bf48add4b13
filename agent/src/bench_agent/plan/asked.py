"""Cells that a server asks for, beside those of the run: three at most, in a tenth of its time."""

from collections.abc import Callable, Iterable

from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.payload.result import Asked

from ..base.errors import UsageProblem
from ..remote.asks import ServerAsk
from .plan import Plan, PlannedCell, Selection

MOST_CELLS = 3
SHARE_OF_TIME = 0.1
DIGESTS = {workload.name: workload.digest for workload in CATALOGUE}


def choose(
    run: Plan, wanted: Iterable[tuple[ServerAsk, Asked]], lay_out: Callable[[Selection], Plan]
) -> tuple[PlannedCell, ...]:
    """The cells to offer, in the order in which they are wanted, without those that the run
    measures anyway, that cannot run here, or of other data than the run's."""
    left_seconds = SHARE_OF_TIME * run.estimate_seconds
    kinds = {planned.cell.data for planned in run.cells}
    taken = {planned.cell.digest for planned in run.cells}
    chosen: list[PlannedCell] = []
    for ask, asked in wanted:
        if len(chosen) == MOST_CELLS:
            break
        if ask.data not in kinds or DIGESTS.get(ask.workload) != ask.workload_digest:
            continue
        planned = _planned(ask, lay_out)
        if planned is None or planned.cell.digest in taken:
            continue
        if planned.estimate_seconds <= left_seconds:
            left_seconds -= planned.estimate_seconds
            taken.add(planned.cell.digest)
            chosen.append(planned.model_copy(update={"asked": asked}))
    return tuple(chosen)


def _planned(ask: ServerAsk, lay_out: Callable[[Selection], Plan]) -> PlannedCell | None:
    """The cell as it would run here, on the first device of its kind; None where it cannot."""
    selection = Selection(
        workloads=(ask.workload,),
        frameworks=(ask.framework,),
        devices=(ask.device,),
        recipes=(ask.recipe,),
        batch_sizes=(ask.batch_size,),
        precisions=(ask.precision,),
        data=ask.data,
        repeats=1,
    )
    try:
        return next(iter(lay_out(selection).cells), None)
    except (UsageProblem, LookupError):  # a name of a newer server, or a device that is not here
        return None
