"""Asks: the set-ups that are wanted again, drawn when the projection reaches a new day (UTC).

The draw of a day is made from the rows that follow from all entries before the day's first one, and
stored, because those rows may be erased later. It reads for seconds on a large log, so it is made
before the transaction that stores it. Which ask a result answers is found once and stored
with its submission, for the same reason. Asks are kept for a week.
"""

import base64
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.payload.result import Asked
from bench_protocol.statistics.change_points import LEAST_RUNS, change_points
from bench_protocol.trust import asks
from bench_protocol.trust.asks import REASONS, HardwareSetup, Reason

from ..db.tables import Ask, AskDay, LogCheckpoint, LogEntry, Submission, table_of
from ..ranking.figures import Setup, Subject
from ..ranking.rows import RESULTS, TABLE

DAYS_KEPT = 7
MOST_OF_A_HARDWARE = 20
FAILED = '{"passed":false%'


def next_day(connection: Connection, start: int) -> date | None:
    """The day that begins with the entry at an index; None if it begins none, or one whose asks are
    drawn already."""
    before, first = (connection.scalar(LOGGED_AT, {"start": at}) for at in (start - 1, start))
    if before is None or first is None or before.date() >= first.date():
        return None
    return first.date() if _is_new(connection, first.date()) else None


def entries_of_day(connection: Connection, start: int, limit: int) -> int:
    """The number of next entries of the first one's day, at most ``limit``."""
    at = connection.scalar(LOGGED_AT, {"start": start})
    if at is None:
        return limit
    window = {"start": start, "end": start + limit, "next": _midnight(at.date() + timedelta(1))}
    first = connection.scalar(NEXT_DAY, window)
    return limit if first is None else first - start


class DayDraw(NamedTuple):
    """The asks of a day, drawn from the ``root`` of the first ``size`` entries; ``rows``: of the
    table ``ask``."""

    day: date
    root: str
    size: int
    rows: list[dict[str, Any]]


def draw(connection: Connection, day: date, size: int) -> DayDraw | None:
    """Draw a day's asks from the present rows and the root of ``size`` entries, which these follow
    from; None where they are drawn already, and before the first entry."""
    note = connection.scalar(NOTE, {"size": size})
    # An audit has no checkpoints.
    if size == 0 or note is None or not _is_new(connection, day):
        return None
    root = base64.b64decode(note.splitlines()[2]).hex()
    return DayDraw(day, root, size, _drawn(connection, day, root))


def store(connection: Connection, drawn: DayDraw) -> None:
    """Store the asks of a day, unless another projector has; delete those of a week ago.

    A log without a new entry has the same root, so yesterday's asks become those of this day.
    """
    if not _is_new(connection, drawn.day):
        return
    day = drawn.day.isoformat()
    connection.execute(insert(_DAYS), {"day": day, "root": drawn.root, "size": drawn.size})
    if drawn.rows:
        again = [{"again": row["id"]} for row in drawn.rows]
        connection.execute(delete(_ASKS).where(_ASKS.c.id == bindparam("again")), again)
        connection.execute(insert(_ASKS), drawn.rows)
    old = {"day": (drawn.day - timedelta(DAYS_KEPT)).isoformat()}
    connection.execute(delete(_ASKS).where(_ASKS.c.day < bindparam("day")), old)


def answered(connection: Connection, asked: Asked, subject: Subject) -> str | None:
    """The id of the ask that a result names, if it was drawn for its cell and hardware. Its timing
    may differ: the agent's device decides that."""
    named = {"root": asked.root, "reason": asked.reason, "hardware_slug": subject.hardware_slug}
    cell = {**subject.setup._asdict(), "workload_digest": subject.workload_digest}
    of_cell = {name: cell[name] for name in CELL_COLUMNS}
    found = connection.execute(FIND, {**named, **of_cell})
    return next((str(row.id) for row in found if row.result_id == asked.result), None)


def _drawn(connection: Connection, day: date, root: str) -> list[dict[str, Any]]:
    """Rows of the day's asks, at most ``MOST_OF_A_HARDWARE`` for each hardware."""
    wanted: dict[str, list[tuple[int, str, dict[str, Any]]]] = {}
    figures = connection.execute(FIGURES, {"level": "hardware"}).all()
    outliers = _outliers(connection, day)
    changes = _changes(connection, day)
    top = _top(figures)
    for row in figures:
        setup = _setup_of(row)
        about: str | None = None
        reason: Reason = "sample"
        if setup in outliers:
            reason, about = "outlier", outliers[setup]
        elif setup in changes:
            reason = "change"
        elif row.id in top:
            reason, about = "board_top", row.result_id
        elif row.owners == 1:
            reason, about = "single_owner", row.result_id
        if not asks.is_drawn(root, setup, reason):
            continue
        identity = asks.ask_id(root, setup)
        ask = {
            "id": identity,
            "day": day.isoformat(),
            "root": root,
            "reason": reason,
            "result_id": about,
            "hardware": row.hardware,
            "workload": row.workload,
            **setup._asdict(),
        }
        order = (REASONS.index(reason), identity, ask)
        wanted.setdefault(setup.hardware_slug, []).append(order)
    return [
        ask
        for of_hardware in wanted.values()
        for _, _, ask in sorted(of_hardware, key=lambda one: one[:2])[:MOST_OF_A_HARDWARE]
    ]


def _top(figures: Collection[Any]) -> set[str]:
    """Ids of the fastest figure of each workload at its batch size in float32, for each kind of
    data and timing."""
    batch = {workload.digest: workload.batch_size for workload in CATALOGUE}
    best: dict[tuple[str, ...], Any] = {}
    for row in figures:
        if row.precision == "float32" and batch.get(row.workload_digest) == row.batch_size:
            board = (row.workload_digest, row.data, row.timing)
            first = best.get(board)
            if first is None or (row.ns_per_sample, row.id) < (first.ns_per_sample, first.id):
                best[board] = row
    return {row.id for row in best.values()}


def _outliers(connection: Connection, day: date) -> Mapping[HardwareSetup, str]:
    rows = connection.execute(OUTLIERS, {"since": _week_before(day)})
    return {HardwareSetup(*row[:-1]): row.submission_id for row in rows}


def _changes(connection: Connection, day: date) -> set[HardwareSetup]:
    """Set-ups in which the history of a machine changed in the last week."""
    since = _week_before(day)
    changed = set()
    for row in connection.execute(MACHINES, {"since": since, "least": 2 * LEAST_RUNS}).all():
        runs = connection.execute(RUNS, {"machine": row.id}).all()
        places = change_points([run.ns_per_sample for run in runs])
        if any(runs[place].newest_at >= since for place in places):
            changed.add(_setup_of(row))
    return changed


def _setup_of(row: Any) -> HardwareSetup:
    return HardwareSetup._make(getattr(row, name) for name in HardwareSetup._fields)


def _is_new(connection: Connection, day: date) -> bool:
    newest = connection.scalar(NEWEST)
    return newest is None or newest < day.isoformat()


def _week_before(day: date) -> datetime:
    return _midnight(day) - timedelta(DAYS_KEPT)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


# Statements, built once.
_ASKS, _DAYS, _LOG, _CHECKPOINTS, _SUBMISSIONS = map(
    table_of, (Ask, AskDay, LogEntry, LogCheckpoint, Submission)
)
CELL_COLUMNS = ("workload_digest", *(name for name in Setup._fields if name != "timing"))
NEWEST = select(func.max(_DAYS.c.day))
LOGGED_AT = select(_LOG.c.logged_at).where(_LOG.c.log_index == bindparam("start"))
NEXT_DAY = select(func.min(_LOG.c.log_index)).where(
    _LOG.c.log_index > bindparam("start"),
    _LOG.c.log_index < bindparam("end"),
    _LOG.c.logged_at >= bindparam("next"),
)
NOTE = select(_CHECKPOINTS.c.note).where(_CHECKPOINTS.c.size == bindparam("size"))
FIGURES = select(
    *(TABLE.c[name] for name in ("id", "hardware", "workload", "owners", "ns_per_sample")),
    *(TABLE.c[name] for name in ("result_id", *HardwareSetup._fields)),
).where(TABLE.c.level == bindparam("level"))
MACHINES = select(TABLE.c.id, *(TABLE.c[name] for name in HardwareSetup._fields)).where(
    TABLE.c.level == "machine",
    TABLE.c.newest_at >= bindparam("since"),
    TABLE.c.runs >= bindparam("least"),
)
RUNS = (
    select(TABLE.c.ns_per_sample, TABLE.c.newest_at)
    .where(TABLE.c.parent_id == bindparam("machine"))
    .order_by(TABLE.c.newest_at, TABLE.c.id)
)
OUTLIERS = (
    select(*(RESULTS.c[name] for name in HardwareSetup._fields), RESULTS.c.submission_id)
    .join(_SUBMISSIONS, _SUBMISSIONS.c.id == RESULTS.c.submission_id)
    .where(_SUBMISSIONS.c.received_at >= bindparam("since"), _SUBMISSIONS.c.outlier.like(FAILED))
    .where(RESULTS.c.moderation.is_(None) | (RESULTS.c.moderation != "hidden"))
    .order_by(RESULTS.c.log_index)
)
FIND = (
    select(_ASKS.c.id, _ASKS.c.result_id)
    .where(_ASKS.c.root == bindparam("root"), _ASKS.c.reason == bindparam("reason"))
    .where(_ASKS.c.hardware_slug == bindparam("hardware_slug"))
    .where(*(_ASKS.c[name] == bindparam(name) for name in CELL_COLUMNS))
    .order_by(_ASKS.c.id)
)
