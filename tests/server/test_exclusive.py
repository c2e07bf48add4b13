"""Locks of the database: one process has each, and notices its end; also behind a pooler."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Engine, Pool, event, text
from sqlalchemy.exc import OperationalError
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster
from tests.fakes.projected import is_projected
from tests.fakes.waiting import wait_for

from bench_server.cli.project import projecting
from bench_server.db.store import Store
from bench_server.log import writer
from bench_server.projection import projector

ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
END_HOLDERS = text(
    "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory' AND granted "
    "AND (classid::bigint << 32) | objid::bigint = :number"
).bindparams(number=int.from_bytes(projector.LOCK.encode()[:7]))


def end_holders(store: Store) -> int:
    """End the holders of the projector's lock, as a restart does; return their number."""
    with store.reading() as session:
        return len(session.connection().execute(END_HOLDERS).all())


def test_a_lock_ends_with_an_error_of_its_process(store: Store, database_url: str) -> None:
    """The connection goes back to no pool, where it would keep the lock."""

    def failing() -> None:
        with store.exclusive(projector.LOCK) as first:
            assert first.held()
            raise TimeoutError

    with pytest.raises(TimeoutError):
        failing()
    other = Store(database_url)
    with other.exclusive(projector.LOCK) as second, store.exclusive(projector.LOCK) as third:
        assert (second.held(), third.held()) == (True, False)
    other.close()


@ON_POSTGRESQL
def test_a_lock_whose_connection_died_is_not_held(store: Store) -> None:
    with store.exclusive(projector.LOCK) as first:
        assert end_holders(store) == 1
        with store.exclusive(projector.LOCK) as second:
            assert second.held()
            with pytest.raises(OperationalError):
                first.held()


@ON_POSTGRESQL
def test_a_projector_whose_lock_died_waits_for_its_turn(
    app: FastAPI, store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projector, "RETRY_SECONDS", 0.05)
    other = Store(database_url)
    with projecting(store):
        assert wait_for(lambda: end_holders(other))
        with ExitStack() as locks:

            def takes_its_turn() -> bool:
                """The projector may have been first again."""
                locks.close()
                end_holders(other)
                return locks.enter_context(other.exclusive(projector.LOCK)).held()

            assert wait_for(takes_its_turn)
            time.sleep(0.2)
            Poster(TestClient(app)).enroll()
            time.sleep(0.3)
            assert not is_projected(other)
        assert wait_for(lambda: is_projected(other))
    other.close()


OTHER_SESSION = (b"DEALLOCATE ALL", b"SELECT pg_advisory_unlock_all()", b"DISCARD TEMP")
# The driver prepares a statement that it has seen five times.
OFTEN = 8


@pytest.fixture
def pooled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each transaction gets a session that knows nothing of the last one, as with PgBouncer."""

    def ended(connection: Any, *_: object) -> None:
        if connection is not None and connection.pgconn.transaction_status == 0:
            for statement in OTHER_SESSION:  # unseen by the driver, which would forget its own
                connection.pgconn.exec_(statement)

    def executed(connection: Any, *_: object) -> None:
        ended(connection.connection.dbapi_connection)

    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", 0)
    event.listen(Pool, "checkin", ended)
    event.listen(Engine, "after_cursor_execute", executed)
    yield
    event.remove(Pool, "checkin", ended)
    event.remove(Engine, "after_cursor_execute", executed)


@ON_POSTGRESQL
@pytest.mark.usefixtures("pooled")
def test_no_prepared_statement_is_expected(store: Store) -> None:
    for _ in range(OFTEN):
        with store.writing() as session:
            writer.begin(session, AUTHORITY)
            assert session.connection().scalar(text("SHOW timezone")) == "UTC"


@ON_POSTGRESQL
@pytest.mark.usefixtures("pooled")
def test_a_lock_is_one_process_s(store: Store, database_url: str) -> None:
    other = Store(database_url)
    with store.exclusive(projector.LOCK) as first, other.exclusive(projector.LOCK) as second:
        assert (first.held(), second.held(), first.held()) == (True, False, True)
    with other.exclusive(projector.LOCK) as again:
        assert again.held()
    other.close()
