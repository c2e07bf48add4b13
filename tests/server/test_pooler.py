"""A pooler in transaction mode: nothing is expected of a session after its transaction."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, Pool, event, text
from tests.fakes.authority import AUTHORITY

from bench_server.db.store import Store
from bench_server.log import writer
from bench_server.projection import projector

ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
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
