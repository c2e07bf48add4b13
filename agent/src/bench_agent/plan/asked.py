"""Cells that a server asks for, beside those of the run: three at most, in a tenth of its time."""

from collections.abc import Callable, Iterable

from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload.result import Asked

from ..base.errors import UsageProblem
from ..remote.asks import ServerAsk
from .plan import Plan, PlannedCell, Selection

MOST_CELLS = 3
SHARE_OF_TIME = 0.1
DIGESTS = {workload.name: workload.digest for workload in CATALOGUE}


# A set-up that a server wants, on the first device of its kind, and what its result names.
Wanted = tuple[ServerAsk, Asked]


def choose(
    run: Plan, wanted: Iterable[Wanted], lay_out: Callable[[Selection], Plan]
) -> tuple[PlannedCell, ...]:
    """The cells to offer, in the order in which they are wanted.

    Left out: what the run measures anyway, what cannot run here, and other data than the run's.

    Args:
        lay_out: plans a selection on this machine, as :func:`.plan.make_plan`.
    """
    left_seconds = SHARE_OF_TIME * run.estimate_seconds
    kinds = {planned.cell.data for planned in run.cells}
    taken = {planned.cell.digest for planned in run.cells}
    chosen: list[PlannedCell] = []
    for one, asked in wanted:
        if len(chosen) == MOST_CELLS:
            break
        if one.data not in kinds or DIGESTS.get(one.workload) != one.workload_digest:
            continue
        planned = _planned(one, lay_out)
        if planned is None or planned.cell.digest in taken:
            continue
        if planned.estimate_seconds <= left_seconds:
            left_seconds -= planned.estimate_seconds
            taken.add(planned.cell.digest)
            chosen.append(planned.model_copy(update={"asked": asked}))
    return tuple(chosen)


def _planned(one: ServerAsk, lay_out: Callable[[Selection], Plan]) -> PlannedCell | None:
    """The cell as it would run here; None where it cannot."""
    selection = Selection(
        workloads=(one.workload,),
        frameworks=(one.framework,),
        devices=(one.device,),
        recipes=(one.recipe,),
        batch_sizes=(one.batch_size,),
        precisions=(one.precision,),
        data=one.data,
        repeats=1,
    )
    try:
        cells = lay_out(selection).cells
    except (UsageProblem, LookupError):  # an unknown name, or a device that is not here
        return None
    return cells[0] if cells else None


def words(planned: PlannedCell) -> str:
    """One line of the offer, without the reason."""
    cell: Cell = planned.cell
    return f"{cell}, about {planned.estimate_seconds:.0f} s"
