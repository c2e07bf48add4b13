"""What is missing beside results (:class:`bench_protocol.trust.omissions.Omissions`).

It is counted for a key and its rotations, by the days (UTC) of challenges and results
(:mod:`bench_server.ingest.left_out`). Challenges are no entries of the log, so an audit does not
count them again.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, String, bindparam, case, cast, func, not_, select

from bench_protocol.trust.omissions import DAYS, Gap, Omissions

from ..db.lists import among
from ..db.tables import Challenge, LeftOut, SigningKey, Submission, table_of

# Days are counted whole, so that a result and its row on a board say the same.
NEAR = timedelta(days=DAYS)
# A count of a run's renewals ends here, so that a board reads no more of them.
MOST_RENEWALS = 100


def of_results(connection: Connection, result_ids: Iterable[str]) -> dict[str, Omissions]:
    results = connection.execute(OF_RESULTS, {"ids": sorted(set(result_ids))}).all()
    if not results:
        return {}
    days = [row.received_at.date() for row in results]
    near = {"since": min(days) - NEAR, "until": max(days) + NEAR}
    of_key: defaultdict[str, list[Any]] = defaultdict(list)
    ids = sorted({row.first_key_id for row in results})
    for row in connection.execute(COUNTED, {"ids": ids, **near}):
        of_key[row.first_key_id].append(row)
    return {row.id: _of(row, of_key[row.first_key_id]) for row in results}


def _of(result: Any, of_key: Iterable[Any]) -> Omissions:
    day = result.received_at.date()
    near = [row for row in of_key if abs(row.day - day) <= NEAR]
    return Omissions(
        challenges=sum(row.challenges for row in near),
        renewals=result.renewals,
        withdrawn=sum(row.withdrawn for row in near),
        missing_repeats=_gaps(map(int, result.with_gaps.split(","))) if result.with_gaps else (),
    )


def _gaps(repeats: Iterable[int]) -> tuple[Gap, ...]:
    there = [0, *sorted(repeats)]
    return tuple((a + 1, b - 1) for a, b in pairwise(there) if b - a > 1)


_C, _L, _KEYS, _SENT = map(table_of, (Challenge, LeftOut, SigningKey, Submission))
_SAME_RUN, _LATER, _OF_CELL = _C.alias(), _C.alias(), _SENT.alias()
# The newest challenge of a key may be in use.
_NEWEST = select(func.max(_LATER.c.issued_at)).where(_LATER.c.key_id == _SAME_RUN.c.key_id)
_RENEWALS = (
    select(_SAME_RUN.c.id)
    .where(_SAME_RUN.c.key_id == _C.c.key_id, _SAME_RUN.c.run_id == _C.c.run_id)
    .where(not_(_SAME_RUN.c.used))
    .where(_SAME_RUN.c.issued_at < _NEWEST.correlate(_SAME_RUN).scalar_subquery())
    .limit(MOST_RENEWALS)
    .correlate(_C)
    .subquery()
)
# A board has hundreds of results, and few have gaps: only the repeats of those are read.
_REPEAT = _OF_CELL.c.repeat
_WITH_GAPS = (
    select(
        case((func.count() < func.max(_REPEAT), func.aggregate_strings(cast(_REPEAT, String), ",")))
    )
    .where(*(_OF_CELL.c[name] == _SENT.c[name] for name in ("run_id", "key_id", "cell_digest")))
    .correlate(_SENT)
)
# Joined, PostgreSQL would read all keys.
_FIRST_KEY = select(_KEYS.c.first_key_id).where(_KEYS.c.key_id == _SENT.c.key_id).correlate(_SENT)
OF_RESULTS = (
    select(
        *(_SENT.c.id, _SENT.c.received_at),
        _FIRST_KEY.scalar_subquery().label("first_key_id"),
        select(func.count()).select_from(_RENEWALS).scalar_subquery().label("renewals"),
        _WITH_GAPS.scalar_subquery().label("with_gaps"),
    )
    .join(_C, _C.c.id == _SENT.c.challenge_id, isouter=True)
    .where(among(_SENT.c.id, "ids"))
)
COUNTED = (
    select(_KEYS.c.first_key_id, _L.c.day, _L.c.challenges, _L.c.withdrawn)
    .join(_KEYS, _KEYS.c.key_id == _L.c.key_id)
    .where(among(_KEYS.c.first_key_id, "ids"))
    .where(_L.c.day.between(bindparam("since"), bindparam("until")))
)
