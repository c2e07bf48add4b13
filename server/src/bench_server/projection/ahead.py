"""Read batches ahead of the projector, on workers: checking a result needs no other result.

Batches are applied here, one after the other: what a result does to rows depends on all entries
before it. Workers read the database that their own environment names; its address is in no task.
"""

import logging
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from sqlalchemy import Connection, select
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from bench_protocol.base.scheduler import SchedulerProblem
from bench_protocol.signing import envelope
from bench_protocol.training import recomputation

from ..cluster import Map
from ..db import migrate
from ..db.store import Store
from ..db.tables import LogCheckpoint, LogEntry, RecomputeJob, table_of
from ..log import reader
from ..recompute import jobs
from ..settings import Settings
from . import asks, position
from .entries import Batch, read_batch
from .projector import PAUSE_SECONDS, Projector

logger = logging.getLogger(__name__)


class Range(NamedTuple):
    """Entries ``[start, start + limit)`` of the log that signed ``note`` at ``size``."""

    start: int
    limit: int
    size: int
    note: str


def project(projector: Projector, mapped: Map, progress: Callable[[int], None]) -> None:
    """Apply the entries that the log has now, from the position on.

    A batch that cannot be applied is left to the projector, which names the bad entry. So is what
    another projector applies meanwhile.

    Raises:
        ProjectionStopped: an entry cannot be applied.
        SchedulerProblem: the workers cannot be used.
    """
    _note_statements(projector.store)
    for start, batch in mapped(read, _ranges(projector)):
        while (at := _position(projector.store)) < start:
            if not projector.step():
                time.sleep(PAUSE_SECONDS)
        if at == start:
            _apply(projector, start, batch)
        progress(start)


def _apply(projector: Projector, start: int, batch: Batch | None) -> None:
    if batch is not None:
        try:
            projector.apply(start, batch)
        except OperationalError:
            raise
        except Exception:
            logger.exception("the batch from entry %d on could not be applied", start)
        else:
            return
    projector.step()


def read(entries: Range) -> tuple[int, Batch | None]:
    """Read a batch, on a worker.

    Returns:
        The index of its first entry, and the batch; None if an entry cannot be read.

    Raises:
        SchedulerProblem: the worker has no such log; the message names the setting.
    """
    settings = Settings()
    setting = "BENCH_SERVER_DATABASE_URL of a worker"
    try:
        store = _store(settings.database_url)
        with store.reading() as session:
            signed = session.get(LogCheckpoint, entries.size)
            if signed is None or signed.note != entries.note:
                raise SchedulerProblem(f"{setting} is another log's database")
            return entries.start, _batch(session.connection(), entries)
    except (migrate.SchemaMismatch, SQLAlchemyError, OSError) as error:
        words = " ".join(str(getattr(error, "orig", None) or error).split())
        raise SchedulerProblem(f"{setting}: {words}") from None


def _batch(connection: Connection, entries: Range) -> Batch | None:
    try:
        return read_batch(connection, entries.start, entries.limit)
    except SQLAlchemyError:
        raise
    except Exception:
        logger.exception("the entries from %d on could not be read", entries.start)
        return None


@cache
def _store(database_url: str) -> Store:
    """The worker's database, which stays open for its next task."""
    store = Store(database_url)
    migrate.require_current(store.engine)
    return store


def _ranges(projector: Projector) -> Iterator[Range]:
    """The batches that the projector would apply."""
    with projector.store.reading() as session:
        newest = reader.newest_checkpoint(session)
    start = _position(projector.store)
    while start < newest.size:
        limit = min(projector.batch, newest.size - start)
        with projector.store.reading() as session:
            limit = asks.entries_of_day(session.connection(), start, limit)
        yield Range(start, limit, newest.size, newest.note)
        start += limit


def _position(store: Store) -> int:
    with store.reading() as session:
        return position.read(session.connection()).next_index


def _note_statements(store: Store) -> None:
    """Note the statements that the queue does not have, as after a downgrade: the projector would
    come to each of them before the results after it are read."""
    with store.writing() as session:
        connection = session.connection()
        for log_index, raw in connection.execute(NOT_NOTED).all():
            said = recomputation.parse(envelope.read(raw).payload)
            jobs.note(connection, log_index, said)


_LOG, _JOBS = map(table_of, (LogEntry, RecomputeJob))
NOT_NOTED = (
    select(_LOG.c.log_index, _LOG.c.envelope)
    .where(
        _LOG.c.kind == "recomputation",
        _LOG.c.log_index.not_in(
            select(_JOBS.c.statement_index).where(_JOBS.c.statement_index.is_not(None))
        ),
    )
    .order_by(_LOG.c.log_index)
)
