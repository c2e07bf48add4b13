"""What is missing beside results (:class:`bench_protocol.trust.omissions.Omissions`).

It is counted for a key and its rotations, by the days (UTC) of challenges and results. Challenges
are no entries of the log, so an audit does not count them again.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    not_,
    or_,
    select,
)

from bench_protocol.trust.omissions import DAYS, Gap, Omissions

from ..db.lists import among
from ..db.tables import Challenge, SigningKey, Submission, table_of
from ..db.tables.base import UtcDateTime
from ..ranking.rows import RESULTS

# Days are counted whole, so that a result and its row on a board say the same.
A_DAY, NEAR = timedelta(days=1), timedelta(days=DAYS)


def of_results(connection: Connection, result_ids: Iterable[str]) -> dict[str, Omissions]:
    """Return the omissions of each result, by its id."""
    results = connection.execute(OF_RESULTS, {"ids": sorted(set(result_ids))}).all()
    if not results:
        return {}
    near = {
        "ids": sorted({row.first_key_id for row in results}),
        "since": min(row.received_at for row in results) - NEAR - A_DAY,
        "until": max(row.received_at for row in results) + NEAR + A_DAY,
    }
    of_key: defaultdict[str, list[Any]] = defaultdict(list)
    for query in (RUNS, HIDDEN):
        for row in connection.execute(query, near):
            of_key[row.first_key_id].append(row)
    repeats: defaultdict[Any, list[int]] = defaultdict(list)
    for *run, repeat in connection.execute(REPEATS, {"ids": [row.run_id for row in results]}):
        repeats[tuple(run)].append(repeat)
    return {
        row.id: _of(row, of_key[row.first_key_id], repeats[row.key_id, row.run_id, row.cell_digest])
        for row in results
    }


def _of(result: Any, of_key: Iterable[Any], repeats: Iterable[int]) -> Omissions:
    day = result.received_at.date()
    near = [row for row in of_key if abs(date.fromisoformat(str(row.day)) - day) <= NEAR]
    return Omissions(
        challenges=sum(row.unused for row in near if row.run_id != result.asked and not row.used),
        renewals=sum(row.unused for row in near if row.run_id == result.asked),
        withdrawn=sum(row.withdrawn for row in near),
        missing_repeats=_gaps(repeats),
    )


def _gaps(repeats: Iterable[int]) -> tuple[Gap, ...]:
    there = [0, *sorted(repeats)]
    return tuple((a + 1, b - 1) for a, b in pairwise(there) if b - a > 1)


# -- statements, each built once -------------------------------------------------------------------

_C, _KEYS, _SENT = map(table_of, (Challenge, SigningKey, Submission))
# ``asked``: the run that the result's challenge was asked for.
OF_RESULTS = (
    select(
        *(_SENT.c[name] for name in ("id", "key_id", "run_id", "cell_digest", "received_at")),
        *(_KEYS.c.first_key_id, _C.c.run_id.label("asked")),
    )
    .join(_KEYS, _KEYS.c.key_id == _SENT.c.key_id)
    .join(_C, _C.c.id == _SENT.c.challenge_id, isouter=True)
    .where(among(_SENT.c.id, "ids"))
)


def _near(moment: Any) -> Any:
    since, until = (bindparam(name, type_=UtcDateTime()) for name in ("since", "until"))
    return and_(among(_KEYS.c.first_key_id, "ids"), moment.between(since, until))


# The newest challenge of a key may be in use.
_LATER = _C.alias()
_NEWEST = select(func.max(_LATER.c.issued_at)).where(_LATER.c.key_id == _C.c.key_id)
_UNUSED = func.sum(
    case((and_(not_(_C.c.used), _C.c.issued_at < _NEWEST.correlate(_C).scalar_subquery()), 1))
)
RUNS = (
    select(
        *(_KEYS.c.first_key_id, _C.c.run_id, func.date(func.min(_C.c.issued_at)).label("day")),
        func.coalesce(_UNUSED, 0).label("unused"),
        func.count(case((_C.c.used, 1))).label("used"),
        func.sum(_C.c.withdrawn).label("withdrawn"),
    )
    .join(_KEYS, _KEYS.c.key_id == _C.c.key_id)
    .where(_near(_C.c.issued_at))
    .group_by(_KEYS.c.first_key_id, _C.c.run_id)
    .having(or_(_UNUSED > 0, func.sum(_C.c.withdrawn) > 0))
)
_DAY = func.date(RESULTS.c.received_at)
HIDDEN = (
    select(
        *(_KEYS.c.first_key_id, _DAY.label("day"), func.count().label("withdrawn")),
        *(literal_column(f"{value}").label(name) for name, value in (("unused", 0), ("used", 1))),
        literal_column("''").label("run_id"),
    )
    .join(_KEYS, _KEYS.c.key_id == RESULTS.c.key_id)
    # A constant, so that SQLite uses the partial index of these results.
    .where(_near(RESULTS.c.received_at), RESULTS.c.moderation == literal_column("'hidden'"))
    .group_by(_KEYS.c.first_key_id, _DAY)
)
REPEATS = select(_SENT.c.key_id, _SENT.c.run_id, _SENT.c.cell_digest, _SENT.c.repeat).where(
    among(_SENT.c.run_id, "ids")
)
