"""Writes very many rows into an empty database by the fastest way each has.

Nothing is looked up or checked but keys: rows must be right. Secondary indexes are made from whole
tables at the end, and only then is the database on disk.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, Table
from sqlalchemy.schema import CreateIndex, DropIndex

# SQLite's cache while it is filled, in KiB: what a million results touch again and again.
CACHE_KIB = 1_500_000


class Bulk:
    """A connection that takes rows in; columns in the order of the table's."""

    def __init__(self, engine: Engine, connection: Any) -> None:
        self.connection = connection
        self.copies = engine.dialect.name == "postgresql"

    def insert(self, table: Table, rows: Sequence[Sequence[Any]]) -> None:
        names = ", ".join(column.name for column in table.columns)
        if not self.copies:
            places = ", ".join("?" * len(table.columns))
            self.connection.executemany(
                f"INSERT INTO {table.name} ({names}) VALUES ({places})",
                rows,
            )
            return
        with self.connection.cursor().copy(f"COPY {table.name} ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


@contextmanager
def bulk(engine: Engine, tables: Sequence[Table], keep_indexes: bool = False) -> Iterator[Bulk]:
    """Fill ``tables``; at the end all is on disk, with indexes and the planner's statistics.

    Args:
        keep_indexes: indexes grow with each row, as a server's do; slower, and they are larger.
    """
    engine.dispose()
    indexes = [] if keep_indexes else [index for table in tables for index in table.indexes]
    raw = engine.raw_connection()
    connection: Any = raw.driver_connection
    sqlite = engine.dialect.name == "sqlite"

    def execute(statement: Any) -> None:
        connection.execute(str(statement.compile(dialect=engine.dialect)))

    if sqlite:
        sqlite3.register_adapter(datetime, _text)
        for setting in ("foreign_keys = OFF", "journal_mode = OFF", "synchronous = OFF"):
            connection.execute(f"PRAGMA {setting}")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute("BEGIN")
    else:
        connection.execute("SET session_replication_role = replica")  # no checks of foreign keys
        connection.execute("SET maintenance_work_mem = '1GB'")
    for index in indexes:
        execute(DropIndex(index))
    yield Bulk(engine, connection)
    for index in indexes:
        execute(CreateIndex(index))
    connection.commit()
    if sqlite:
        connection.execute("ANALYZE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    else:
        connection.autocommit = True
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
    raw.invalidate()
    engine.dispose()


def _text(at: datetime) -> str:
    """A moment as :class:`bench_server.db.tables.base.UtcDateTime` writes it in SQLite."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
