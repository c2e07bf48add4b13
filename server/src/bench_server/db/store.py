"""The database: SQLite (WAL) or PostgreSQL, one engine a process.

An acknowledged write is on disk: SQLite runs with ``synchronous=FULL``, PostgreSQL with its own
default. On SQLite a writing transaction begins IMMEDIATE, so that two writers wait for each other
instead of failing halfway; reading ones stay deferred and never wait.
"""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock as ThreadLock
from typing import IO, Any

from sqlalchemy import Connection, Engine, create_engine, event, func, make_url, select
from sqlalchemy.exc import DatabaseError, InternalError, OperationalError, TimeoutError
from sqlmodel import Session

if sys.platform != "win32":
    import fcntl

BUSY_TIMEOUT_MS = 10_000
# Connections of a process, of which half are kept open.
CONNECTIONS = 16
_POOL = {"pool_size": CONNECTIONS // 2, "max_overflow": CONNECTIONS // 2}
DRIVERS = ("sqlite", "sqlite+pysqlite", "postgresql+psycopg")
# In UTC the driver can read back every moment that was stored, the year 1 included. PgBouncer keeps
# this setting for each client, but refuses it among the options of a connection.
SET_UP_POSTGRESQL = "SELECT pg_backend_pid(), set_config('TimeZone', 'UTC', false)"
# The database is down, full or locked; InternalError: PostgreSQL takes no writes (read-only);
# TimeoutError: other requests have all connections.
UNAVAILABLE = (OperationalError, InternalError, TimeoutError)

# SQLite's names and PostgreSQL's states of errors that a damaged file causes.
CORRUPT = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "XX001", "XX002")
NO_TEXT = "Could not decode to UTF-8"


def is_damage(error: Exception) -> bool:
    """Whether the database's driver says that a file or a text in it is damaged."""
    cause = error.orig if isinstance(error, DatabaseError) else None
    names = (getattr(cause, name, None) or "" for name in ("sqlite_errorname", "sqlstate"))
    return any(name.startswith(CORRUPT) for name in names) or str(cause).startswith(NO_TEXT)


def utc_now() -> datetime:
    """The clock of a process, unless a test passes another."""
    return datetime.now(UTC)


class UnknownDatabase(ValueError):
    """A database this program does not work with; the message says which it does."""


class Lock:
    """A lock of :meth:`Store.exclusive`. ``taken``: whether this process got it."""

    def __init__(self, taken: bool, connection: Connection | None = None) -> None:
        self.taken = taken
        self._connection = connection

    def held(self) -> bool:
        """Whether this process has the lock now: ask before each step of what it protects.

        Raises:
            OperationalError: it had the lock, which ended with its connection.
        """
        if self.taken and self._connection is not None:
            self._connection.scalar(select(1))
        return self.taken


class Store:
    """Hands out sessions: ``reading()`` and ``writing()``."""

    def __init__(self, database_url: str) -> None:
        self.engine = open_engine(database_url)
        self._writer = self.engine.execution_options(write=True)
        sqlite = self.engine.dialect.name == "sqlite"
        # One snapshot for all queries of a page, which SQLite's transactions have anyway.
        level = {} if sqlite else {"isolation_level": "REPEATABLE READ"}
        self.reader = self.engine.execution_options(**level)
        # SQLite lets writers wait by sleeping longer and longer; a lock wakes the next at once.
        self._turn: AbstractContextManager[object] = ThreadLock() if sqlite else nullcontext()
        path = self.engine.url.database
        on_disk = sqlite and path not in (None, "", ":memory:")
        self._path = path if on_disk else None

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session on one snapshot of the database."""
        with Session(self.reader) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A session whose transaction commits at the end and rolls back on any error.

        What it loaded or added stays readable after the commit.
        """
        with self._turn, Session(self._writer, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def writing_in_turn(self) -> Iterator[Session]:
        """As :meth:`writing`, for what many processes do all the time.

        On SQLite they queue for a lock on a file beside the database, which wakes the next at once
        (not on Windows). It is for short transactions: nobody who queues gives up.
        """
        if self._path is None or sys.platform == "win32":
            with self.writing() as session:
                yield session
            return
        with _lock_file(f"{self._path}-queue") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            with self.writing() as session:
                yield session

    @contextmanager
    def exclusive(self, name: str) -> Iterator["Lock"]:
        """Try to take a lock of this name on the database, of which one process has it until the
        context ends. The lock ends with the process or its connection, however it dies.

        On PostgreSQL it is the lock of a transaction, because a pooler shares sessions: so end it
        after seconds, and take it again.
        """
        if self.engine.dialect.name == "postgresql":
            with self.engine.connect() as connection:
                number = int.from_bytes(name.encode()[:7])
                taken = connection.scalar(select(func.pg_try_advisory_xact_lock(number)))
                yield Lock(bool(taken), connection)
        elif self._path is None or sys.platform == "win32":
            yield Lock(True)
        else:
            with _lock_file(f"{self._path}-{name}") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    yield Lock(False)
                else:
                    yield Lock(True)

    def close(self) -> None:
        self.engine.dispose()


def _lock_file(path: str) -> IO[str]:
    """An empty file to lock. If its disk is full or gone, so is that of the database beside it."""
    try:
        return Path(path).open("w")
    except OSError as error:
        raise OperationalError(f"open {path}", None, error) from error


def open_engine(database_url: str) -> Engine:
    """Make the engine for an address; for SQLite also the folder of the file.

    Raises:
        UnknownDatabase: the address is of another kind of database, or of another driver.
        ImportError: the driver is not installed.
        OSError: the folder cannot be made.
    """
    url = make_url(database_url)
    if url.drivername not in DRIVERS:
        raise UnknownDatabase(
            f"{url.drivername}:// is not supported; possible are sqlite:///PATH and "
            "postgresql+psycopg://USER@HOST/NAME"
        )
    if url.get_backend_name() != "sqlite":
        # Errors name no parameters: a log must not keep what a withdrawal erases.
        engine = create_engine(url, pool_pre_ping=True, hide_parameters=True, **_POOL)
        event.listen(engine, "connect", _set_up_postgresql)
        return engine
    in_memory = url.database in (None, "", ":memory:")
    if not in_memory:
        # Hidden results are in it, so a new folder is closed to other users.
        Path(str(url.database)).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = create_engine(url, hide_parameters=True, **({} if in_memory else _POOL))
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_postgresql(dbapi_connection: Any, _record: object) -> None:
    pid, _ = dbapi_connection.execute(SET_UP_POSTGRESQL).fetchone()
    dbapi_connection.commit()
    if pid != dbapi_connection.info.backend_pid:
        # A pooler answers with a number of its own. In its transaction mode the next transaction
        # may get another session, which lacks the statements that this one prepared.
        dbapi_connection.prepare_threshold = None


def _set_up_sqlite(dbapi_connection: Any, _record: object) -> None:
    # The driver must not begin transactions by itself; _begin_sqlite does.
    dbapi_connection.isolation_level = None
    cursor = dbapi_connection.cursor()
    for pragma in (
        f"busy_timeout = {BUSY_TIMEOUT_MS}",
        "journal_mode = WAL",
        "synchronous = FULL",
        # 16 MB until pages go from the log into the file: those that many results touch go once.
        "wal_autocheckpoint = 4000",
        "foreign_keys = ON",
        "secure_delete = ON",  # what is withdrawn is overwritten, not only unlinked
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    write = connection.get_execution_options().get("write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
