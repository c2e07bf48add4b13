"""``verify-log`` on a local database: what a server does not show, row by row.

SQLite checks its own file. Every value is read. The tree's nodes follow from the entries, and every
row that is shown follows from what was received: that is projected again, in memory, and compared.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice, pairwise
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select
from sqlalchemy import Table as SqlTable

from bench_protocol.signing import merkle, receipts

from ..db import backup
from ..db.lists import among
from ..db.store import Store
from ..db.tables import (
    Aggregate,
    EnvironmentRow,
    LogEntry,
    LogNode,
    Measurement,
    Owner,
    OwnerSpread,
    PublishedFigure,
    RecomputeJob,
    SigningKey,
    Submission,
    Table,
    table_of,
)
from ..log import reader
from ..projection import position, reindex
from ..projection.projector import Projector
from .chunk import Fault

# Faults that are reported of one check of one table.
MOST = 50
LONGEST_VALUE = 60
# Tables that follow from what was received. Published figures are copied, so that a reindex makes
# them again.
REBUILT = tuple(map(table_of, (Measurement, Aggregate, OwnerSpread, EnvironmentRow, RecomputeJob)))
FOLLOWING = (*REBUILT, *map(table_of, (Owner, SigningKey, PublishedFigure)))
# The state of the queue. A job's first result may be withdrawn.
OF_THE_QUEUE = {"leased_until", "processor_seconds", "settled_at", "first_index"}


def faults(store: Store) -> Iterator[Fault]:
    """Find what is damaged or does not follow from the log. A check that cannot go on is a fault
    too, and the others are made."""
    for name, check in CHECKS.items():
        try:
            with store.reading() as session:
                yield from islice(check(session.connection()), MOST)
        except Exception as error:
            yield unreadable(name, error)


def unreadable(name: str, error: Exception) -> Fault:
    """The fault of a check that an error ended; ``name``: what is checked."""
    words = " ".join(str(getattr(error, "orig", None) or error).split())
    return Fault(None, f"{name} cannot be read: {type(error).__name__}: {words[:400]}")


def _structure(connection: Connection) -> Iterator[Fault]:
    if connection.dialect.name != "sqlite":
        return
    for (words,) in connection.exec_driver_sql(f"PRAGMA integrity_check({MOST})"):
        if words != "ok":
            yield Fault(None, f"SQLite's integrity check: {' '.join(words.split())}")
    for table, row, other, _ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        yield Fault(None, f"table {table}: row {row} names a row of {other} that is not there")


def _values(table: SqlTable) -> Callable[[Connection], Iterator[Fault]]:
    def check(connection: Connection) -> Iterator[Fault]:
        count = 0
        for rows in backup.parts(connection, table):
            backup.require_valid(table, rows, count + 1)
            count += len(rows)
        yield from ()

    return check


def _envelopes(connection: Connection) -> Iterator[Fault]:
    """Compare all envelopes with their commitments: answers withhold those of hidden results."""
    entry: Any
    for entry in connection.execution_options(yield_per=backup.BATCH).execute(ENVELOPES):
        opened = reader.envelope_of(entry, entry if entry.kind == "result" else None)
        if opened and receipts.commitment(entry.salt, opened) != entry.commitment:
            yield Fault(entry.log_index, "its envelope is not the one that it commits to")


def _tree(connection: Connection) -> Iterator[Fault]:
    """Compare the stored nodes with those of the entries, level by level."""
    commitments = connection.scalars(select(_LOG.c.commitment).order_by(_LOG.c.log_index))
    hashes, level = [merkle.leaf_hash(commitment) for commitment in commitments], 0
    while hashes:
        of_level = select(_NODES.c.position, _NODES.c.hash).where(_NODES.c.level == level)
        stored = {row.position: row.hash for row in connection.execute(of_level)}
        for at, value in enumerate(hashes):
            if stored.pop(at, None) != value:
                end = (at + 1 << level) - 1
                yield Fault(end, f"the tree's node {at} of level {level} does not follow from it")
        if stored:
            yield Fault(None, f"the tree has nodes of level {level} that follow from no entry")
        hashes = [merkle.node_hash(*pair) for pair in list(pairwise(hashes))[::2]]
        level += 1


def _projection(connection: Connection) -> Iterator[Fault]:
    with closing(Store("sqlite:///:memory:")) as again:
        Table.metadata.create_all(again.engine)
        _project_again(connection, again)
        with again.reading() as session:
            for table in FOLLOWING:
                yield from islice(_differences(table, connection, session.connection()), MOST)


def _project_again(connection: Connection, again: Store) -> None:
    """Copy what was received, and project the entries that the database has projected."""
    end = position.read(connection).next_index
    with again.writing() as session:
        for table in Table.metadata.sorted_tables:
            for rows in () if table in REBUILT else backup.parts(connection, table):
                session.execute(insert(table), rows)
    reindex.clear(again)
    with again.writing() as session:
        session.execute(delete(_LOG).where(_LOG.c.log_index >= end))
    Projector(again).catch_up()


def _differences(table: SqlTable, ours: Connection, again: Connection) -> Iterator[Fault]:
    """Compare the rows of a table, whose key is one column."""
    (key,) = table.primary_key.columns
    same = select(table).where(among(key, "ids"))
    count = 0
    for rows in ours.execution_options(yield_per=backup.BATCH).execute(select(table)).partitions():
        following = {row._mapping[key]: row for row in again.execute(same, {"ids": [
            row._mapping[key] for row in rows]})}  # fmt: skip
        count += len(following)
        for row in rows:
            yield from _difference(table, row, following.get(row._mapping[key]))
    if count < (again.scalar(select(func.count()).select_from(table)) or 0):
        yield Fault(None, f"table {table.name} lacks rows that follow from the log")


def _difference(table: SqlTable, row: Row[Any], following: Row[Any] | None) -> Iterator[Fault]:
    (key,) = table.primary_key.columns
    name = f"table {table.name}, row {row._mapping[key]}"
    log_index = getattr(row, "log_index", None)
    if following is None:
        # Environments and jobs of withdrawn results stay.
        if table.name not in ("environment", "recompute_job"):
            yield Fault(log_index, f"{name}: it follows from no entry")
    elif getattr(following, "key_id", None) != "":  # a job of withdrawn results
        for column in table.columns:
            said, right = row._mapping[column], following._mapping[column]
            if said != right and column.name not in OF_THE_QUEUE:
                words = " is stored, ".join(_around(said, right))
                yield Fault(log_index, f"{name}: {column.name}: {words} follows from the log")


def _around(said: object, right: object) -> tuple[str, str]:
    """Two values, of long ones the part in which they begin to differ."""
    texts = str(said), str(right)
    same = next((at for at, pair in enumerate(zip(*texts, strict=False)) if len({*pair}) > 1), 0)
    start = max(0, same - LONGEST_VALUE // 3)
    return tuple(repr(text[start : start + LONGEST_VALUE]) for text in texts)  # type: ignore[return-value]


_LOG, _NODES, _SUBMISSIONS = map(table_of, (LogEntry, LogNode, Submission))
_OF_LOG = ("log_index", "kind", "commitment", "salt", "envelope")
_OF_RESULT = ("payload_type", "payload", "key_id", "signature")
ENVELOPES = (
    select(*(_LOG.c[name] for name in _OF_LOG), *(_SUBMISSIONS.c[name] for name in _OF_RESULT))
    .outerjoin_from(_LOG, _SUBMISSIONS, _LOG.c.submission_id == _SUBMISSIONS.c.id)
    .where(_LOG.c.salt.is_not(None))
    .where(_LOG.c.envelope.is_not(None) | (_LOG.c.kind == "result"))
)
CHECKS: dict[str, Callable[[Connection], Iterator[Fault]]] = {
    "the database": _structure,
    **{f"table {table.name}": _values(table) for table in Table.metadata.sorted_tables},
    "the envelopes": _envelopes,
    "the tree": _tree,
    "the projection": _projection,
}
