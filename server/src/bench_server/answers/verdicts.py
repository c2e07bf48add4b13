"""All comparisons of an answer, corrected for being shown together."""

from collections.abc import Iterable

from sqlalchemy import select
from sqlmodel import Session

from ..ranking.compare import Comparisons, Pair, compare_all
from ..ranking.figures import UNITS
from ..ranking.rows import RESULTS

# Fewer than the parameters that a query can have.
IDS_AT_ONCE = 1000


def verdicts(session: Session, pairs: Iterable[Pair]) -> Comparisons:
    """Compare every pair of figures that the answer shows."""
    listed = list(pairs)
    lowest = {figure for pair in listed for figure in pair if figure.unit == UNITS[0]}
    unnamed = {f.evidence.result_id for f in lowest if not f.subject.machine_id}
    return compare_all(listed, _machines(session, sorted(unnamed)))


def _machines(session: Session, result_ids: list[str]) -> dict[str, str]:
    """Ids of machines by result."""
    machines: dict[str, str] = {}
    for start in range(0, len(result_ids), IDS_AT_ONCE):
        some = result_ids[start : start + IDS_AT_ONCE]
        query = select(RESULTS.c.submission_id, RESULTS.c.machine_id).where(
            RESULTS.c.submission_id.in_(some)
        )
        machines |= {row[0]: row[1] for row in session.connection().execute(query)}
    return machines
