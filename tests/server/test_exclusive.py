"""Locks of the database: one process has each, and notices when its lock has ended."""

import time
from contextlib import ExitStack

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from tests.fakes.client import Poster
from tests.fakes.projected import is_projected
from tests.fakes.waiting import wait_for

from bench_server.cli.project import projecting
from bench_server.db.store import Store
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
