"""Backup and restore: every row of every table, as one database has them at one moment.

A backup is a SQLite file, whichever database it was made of, so that it can be looked into, and
restored into either kind. It can be made while the server runs: PostgreSQL reads one snapshot
(REPEATABLE READ), SQLite one transaction. The server's own keys are files and not part of it.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, insert, inspect, select
from sqlalchemy import Table as SqlTable
from sqlalchemy.exc import DatabaseError, DataError, IntegrityError

from . import migrate
from .store import open_engine
from .tables import Table

BATCH = 1000
TABLES = Table.metadata.sorted_tables
Rows = Sequence[dict[str, Any]]
MADE_BY = "name a file that bench-server backup made"


class NoBackup(ValueError):
    """The file is not what :func:`backup` made; the message says why."""


class NotEmpty(RuntimeError):
    """The place a copy is to go is taken; the message says by what."""


def backup(engine: Engine, target: Path) -> int:
    """Copy the database into a new file, which appears once complete; returns the number of rows.

    Raises:
        NotEmpty: there is a file of this name.
    """
    if target.exists():
        raise NotEmpty(f"{target} exists; name another file")
    partial = target.with_name(f"{target.name}.partial")
    for leftover in partial.parent.glob(f"{partial.name}*"):
        leftover.unlink()
    partial.touch(mode=0o600)  # hidden results are in it
    copy = open_engine(f"sqlite:///{partial}")
    count = 0
    try:
        migrate.migrate(copy)
        with _snapshot(engine) as source, copy.begin() as sink:
            for table in TABLES:
                for rows in parts(source, table):
                    sink.execute(insert(table), rows)
                    count += len(rows)
        with copy.connect() as connection:
            # Leave one complete file, without a write-ahead log beside it.
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql("PRAGMA journal_mode = DELETE")
    finally:
        copy.dispose()
    partial.rename(target)
    return count


def backup_daily(engine: Engine, folder: Path, day: date, keep_days: int) -> tuple[Path, int]:
    """Write a day's backup, over an earlier one of it; delete all but the newest ``keep_days``."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"backup-{day.isoformat()}.db"
    written = target.with_name(f"{target.name}.new")
    written.unlink(missing_ok=True)
    count = backup(engine, written)
    written.replace(target)
    for old in sorted(folder.glob("backup-????-??-??.db"))[:-keep_days]:
        old.unlink()
    return target, count


def restore(engine: Engine, source: Path) -> int:
    """Copy a backup into an empty database at the same version, all of it or nothing.

    Raises:
        NoBackup: there is no such file, it is something else, or it is damaged.
        SchemaMismatch: the backup is of another version; the message says what to run.
        NotEmpty: the database holds rows.
    """
    if not source.is_file():
        raise NoBackup(f"there is no file {source}")
    # Read-only: open_engine would turn its journal to WAL.
    copy_engine = create_engine(f"sqlite:///file:{quote(str(source.resolve()))}?mode=ro&uri=true")
    try:
        version, wanted = _version(copy_engine, source), migrate.head()
        if version != wanted:
            raise migrate.SchemaMismatch(
                f"the backup is at version {version}, this program works with {wanted}; run: "
                f"bench-server migrate --database-url sqlite:///{source.resolve()}"
            )
        if missing := Table.metadata.tables.keys() - set(inspect(copy_engine).get_table_names()):
            raise NoBackup(f"{source} is incomplete: table {min(missing)} is missing; {MADE_BY}")
        with copy_engine.connect() as reading, engine.execution_options(write=True).begin() as sink:
            for table in TABLES:
                if sink.execute(select(table).limit(1)).first() is not None:
                    raise NotEmpty(
                        f"table {table.name} of the database holds rows; restore into an empty one "
                        "(run bench-server migrate with a new database URL)"
                    )
            return sum(_restored(reading, table, sink) for table in TABLES)
    finally:
        copy_engine.dispose()


def _version(copy_engine: Engine, source: Path) -> str:
    try:
        version = migrate.current(copy_engine)
    except DatabaseError as error:
        raise NoBackup(f"{source} is no backup: {error.orig}; {MADE_BY}") from None
    if version is None:
        raise NoBackup(f"{source} is no backup: nothing of this program is in it; {MADE_BY}")
    return version


def _snapshot(engine: Engine) -> Connection:
    if engine.dialect.name == "sqlite":
        return engine.connect()
    return engine.connect().execution_options(isolation_level="REPEATABLE READ")


def parts(source: Connection, table: SqlTable) -> Iterator[Rows]:
    """The rows of a table, ``BATCH`` at a time."""
    rows = source.execution_options(yield_per=BATCH).execute(select(table)).mappings()
    for part in rows.partitions(BATCH):
        yield [dict(row) for row in part]


def _restored(reading: Connection, table: SqlTable, sink: Connection) -> int:
    count = 0
    try:
        for rows in parts(reading, table):
            require_valid(table, rows, count + 1)
            sink.execute(insert(table), rows)
            count += len(rows)
    except (IntegrityError, DataError, ValueError, TypeError) as error:
        words = str(getattr(error, "orig", error)).splitlines()[0]
        raise NoBackup(
            f"the backup is damaged: table {table.name}, after row {count:,}: {words}; "
            "restore another backup"
        ) from None
    return count


def require_valid(table: SqlTable, rows: Rows, first: int) -> None:
    """Raise ValueError for a value that is missing or of another type than its column."""
    columns = [
        # A custom type does not name its Python type; the type that it wraps does.
        (c.name, c.nullable, getattr(c.type, "impl_instance", c.type).python_type)
        for c in table.columns
    ]
    for number, row in enumerate(rows, first):
        for name, nullable, kind in columns:
            value = row[name]
            if not (nullable if value is None else isinstance(value, kind)):
                found = "NULL" if value is None else type(value).__name__
                raise ValueError(f"row {number:,} has {found} as {name}, not {kind.__name__}")
