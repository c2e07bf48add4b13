"""The queue of recomputations: jobs of logged results, leases, and what was stated about each.

The projector adds the jobs of the results that it applies; a job that is there already is left
alone, so a reindex adds none twice. A worker takes a job by a lease in the database and ends it by
logging its recomputation. Jobs on real data wait apart: only a worker that has the data takes them,
and without one they cost nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    String,
    bindparam,
    cast,
    literal,
    or_,
    select,
    update,
)
from sqlmodel import Session, func

from bench_protocol.catalogue.matrix import DataKind
from bench_protocol.payload.result import Measured, Result
from bench_protocol.signing import envelope
from bench_protocol.training import recomputation
from bench_protocol.training.recomputation import JobKey, Recomputation

from ..db.lists import among
from ..db.store import Store
from ..db.tables import LogEntry, Owner, RecomputeJob, SigningKey, table_of
from ..db.upsert import insert_new
from ..ingest.key_registry import rotations

# Lease: after this time a killed worker's job is free again. Jobs take seconds; on a busy
# machine, at the lowest priority, minutes.
LEASE = timedelta(minutes=10)
DAY = timedelta(days=1)
# The ``logged_index`` of a job on real data that nothing was stated about.
ON_REAL_DATA = -1


class Stated(NamedTuple):
    """A recomputation and the index of its entry."""

    log_index: int
    said: Recomputation


def needed(result: Result, challenge_id: str, log_index: int) -> list[dict[str, Any]]:
    """The job's row of a bound result that was measured, with its challenge's seed."""
    job = recomputation.job(result)
    if job is None or not (
        recomputation.is_seeded(result) and isinstance(result.outcome, Measured)
    ):
        return []
    others = {"challenge_id": challenge_id, "key_id": result.agent.key_id, "first_index": log_index}
    return [_row(job.key, job.nonce, job.workload.name, job.workload.digest, **others)]


def _row(key: JobKey, nonce: str, workload: str, digest: str, **others: Any) -> dict[str, Any]:
    return {
        "id": key.text,
        "seed": key.seed,
        "batch_size": key.batch_size,
        "nonce": nonce,
        "workload": workload,
        "workload_digest": digest,
        "leased_until": None,
        "logged_index": ON_REAL_DATA if key.data == "real" else None,
        "processor_seconds": None,
        "settled_at": None,
        **others,
    }


def add(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    insert_new(connection, _JOBS, rows)


def note(connection: Connection, log_index: int, said: Recomputation) -> None:
    """Note the entry of a recomputation, also where the job is not here: after a downgrade, in an
    audit."""
    others = {"challenge_id": said.challenge, "key_id": "", "first_index": log_index}
    row = _row(said.key, said.nonce, said.workload, said.workload_digest, **others)
    add(connection, [row])
    connection.execute(NOTE, {"of": said.key.text, "logged_index": log_index})


def stated(connection: Connection, keys: Iterable[JobKey]) -> dict[JobKey, Stated]:
    """The logged recomputations of jobs."""
    ids = sorted({key.text for key in keys})
    if not ids:
        return {}
    rows = connection.execute(STATED, {"ids": ids})
    found = (Stated(row.log_index, _said(row.envelope)) for row in rows)
    return {item.said.key: item for item in found}


def before(known: Mapping[JobKey, Stated], index: int) -> dict[JobKey, Recomputation]:
    """The recomputations whose entries precede an index."""
    return {key: item.said for key, item in known.items() if item.log_index < index}


def take(store: Store, now: datetime, real: Iterable[str] = ()) -> RecomputeJob | None:
    """Lease a job that nobody has; None if there is none. Owners take turns, those of one area
    (:mod:`..ranking.owners`) together: the next one is who took the least time of the last day, so
    that no crowd of keys fills it, and its oldest job. ``real``: workloads whose data is here."""
    with store.writing() as session:
        connection = session.connection()
        spent = {row.turn: row.seconds for row in connection.execute(SPENT, {"since": now - DAY})}
        waiting = [
            (spent.get(row.turn, 0.0), row.first_index, row.turn, free)
            for free in _queues(now, real)
            for row in connection.execute(FIRSTS.where(*free))
        ]
        for _, _, turn, free in sorted(waiting, key=lambda one: one[:2]):
            oldest = OLDEST.where(*free, turn == TURN).with_for_update(of=_JOBS, skip_locked=True)
            identity = connection.scalar(oldest)
            if identity is not None:  # else another worker has it
                job = session.get_one(RecomputeJob, identity)
                job.leased_until = now + LEASE
                session.add(job)
                return RecomputeJob(**job.model_dump())
        return None


def release(store: Store, job_id: str) -> None:
    with store.writing() as session:
        session.connection().execute(
            update(_JOBS).where(_JOBS.c.id == job_id, _waits()).values(leased_until=None)
        )


def are_due(session: Session, now: datetime, real: Iterable[str] = ()) -> bool:
    """Whether a job waits for a worker that has the real data of these workloads."""
    return any(
        session.connection().scalar(select(_JOBS.c.id).where(*free).limit(1)) is not None
        for free in _queues(now, real)
    )


def is_stated(row: RecomputeJob) -> bool:
    return row.logged_index not in (None, ON_REAL_DATA)


def data_of(row: RecomputeJob) -> DataKind:
    return "real" if row.id.endswith(recomputation.REAL) else "generated"


def pending(session: Session) -> int:
    """Number of jobs on generated data that nothing was stated about."""
    return _count(session, _JOBS.c.logged_index.is_(None))


def pending_on_real_data(session: Session) -> int:
    """Number of jobs on real data without a recomputation, also where the data is missing."""
    return _count(session, _JOBS.c.logged_index == ON_REAL_DATA)


def spent_seconds(session: Session, key_id: str, since: datetime) -> float:
    """Processor seconds that the jobs of a key, and of those of its rotations, have cost."""
    query = select(func.sum(_JOBS.c.processor_seconds)).where(
        _JOBS.c.key_id.in_(rotations(key_id)), _JOBS.c.settled_at >= since
    )
    return float(session.connection().scalar(query) or 0.0)


def _queues(now: datetime, real: Iterable[str]) -> Iterator[tuple[ColumnElement[bool], ...]]:
    """The conditions of the free jobs: of those on real data, if there is any, then of others."""
    # A lease that ends later was given before the clock was set back; clocks of two machines may
    # differ by a lease.
    is_leased = _JOBS.c.leased_until.between(now, now + 2 * LEASE)
    free = or_(_JOBS.c.leased_until.is_(None), ~is_leased)
    if workloads := sorted(real):
        is_real = _JOBS.c.logged_index == ON_REAL_DATA
        yield is_real, _JOBS.c.workload.in_(workloads), free
    yield _JOBS.c.logged_index.is_(None), free


def _count(session: Session, condition: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(_JOBS).where(condition)
    return int(session.connection().scalar(query) or 0)


def _waits() -> ColumnElement[bool]:
    index = _JOBS.c.logged_index
    return or_(index.is_(None), index == ON_REAL_DATA)


def _said(raw: bytes) -> Recomputation:
    return recomputation.parse(envelope.read(raw).payload)


_JOBS, _LOG, _KEYS, _OWNERS = map(table_of, (RecomputeJob, LogEntry, SigningKey, Owner))
# Whose turn a job is: an area's, else its owner's.
TURN = func.coalesce(
    literal("area ") + cast(_OWNERS.c.area, String), _OWNERS.c.label, _JOBS.c.key_id
)
_WITH_TURN = _JOBS.outerjoin(_KEYS, _KEYS.c.key_id == _JOBS.c.key_id).outerjoin(
    _OWNERS, _OWNERS.c.label == _KEYS.c.owner
)
SPENT = (
    select(TURN.label("turn"), func.sum(_JOBS.c.processor_seconds).label("seconds"))
    .select_from(_WITH_TURN)
    .where(_JOBS.c.settled_at >= bindparam("since"), _JOBS.c.processor_seconds.is_not(None))
    .group_by(TURN)
)
FIRSTS = (
    select(TURN.label("turn"), func.min(_JOBS.c.first_index).label("first_index"))
    .select_from(_WITH_TURN)
    .group_by(TURN)
)
OLDEST = (
    select(_JOBS.c.id).select_from(_WITH_TURN).order_by(_JOBS.c.first_index, _JOBS.c.id).limit(1)
)
NOTE = update(_JOBS).where(_JOBS.c.id == bindparam("of"), _waits())
STATED = (
    select(_LOG.c.log_index, _LOG.c.envelope)
    .select_from(_JOBS.join(_LOG, _JOBS.c.logged_index == _LOG.c.log_index))
    .where(among(_JOBS.c.id, "ids"))
)
