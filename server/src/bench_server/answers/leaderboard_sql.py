"""SQL of the leaderboard: the figures that it ranks."""

from collections.abc import Sequence

from sqlmodel import Session

from bench_protocol.catalogue.workloads import Workload

from ..ranking import medians
from ..ranking.figures import Figure
from ..ranking.held import with_holds
from ..ranking.owners import facts_of
from ..ranking.rows import TABLE
from .criteria import Criteria
from .stored_figures import figures_where


def figures(
    session: Session, workloads: Sequence[Workload], criteria: Criteria, of_machines: bool = False
) -> dict[str, list[Figure]]:
    """Figures of hardware, or of machines, in each workload's set-ups, by the workloads' digests.
    All are read at once.

    A machine or an owner selects machines, and hardware is ranked from those. A trust level selects
    among the figures.
    """
    some_machines = bool({"machine_id", "owner"} & criteria.equal.keys())
    conditions = criteria.on_boards(workloads)
    if of_machines or some_machines:
        found = figures_where(session, TABLE.c.level == "machine", *conditions)
    else:
        level = TABLE.c.level.in_(["hardware", "published"])
        found = figures_where(session, level, *conditions)
    if some_machines and not of_machines:
        owners = (figure.subject.owner for figure in found)
        of_hardware = medians.of_machines(found, facts_of(session.connection(), owners))
        found = with_holds(session.connection(), of_hardware)
    by_workload: dict[str, list[Figure]] = {workload.digest: [] for workload in workloads}
    for figure in found:
        if figure.trust_level >= (criteria.trust_level or 0):
            by_workload[figure.subject.workload_digest].append(figure)
    return by_workload
