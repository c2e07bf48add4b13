"""A database that takes no writes: clients are asked to wait, and all parts go on afterwards."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text
from tests.fakes import results
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster
from tests.fakes.projected import is_projected
from tests.fakes.seeding import invented
from tests.fakes.waiting import wait_for

from bench_protocol import envelope
from bench_server.cli.project import projecting
from bench_server.db.store import Store
from bench_server.log import writer
from bench_server.projection import position, projector
from bench_server.recompute import worker


@contextmanager
def refusing_writes(store: Store) -> Iterator[None]:
    """PostgreSQL is read-only, as a standby is; beside SQLite's file none can be opened."""
    if store.engine.dialect.name == "postgresql":
        with read_only(store):
            yield
    else:
        with no_file_at(Path(f"{store.engine.url.database}-queue")):
            yield


@contextmanager
def no_file_at(path: Path) -> Iterator[None]:
    path.unlink(missing_ok=True)
    path.mkdir()
    try:
        yield
    finally:
        path.rmdir()


@contextmanager
def read_only(store: Store) -> Iterator[None]:
    def switch(state: str) -> None:
        with store.engine.connect() as connection:
            name = connection.scalar(text("SELECT current_database()"))
            connection.rollback()
            connection.execute(text("SET TRANSACTION READ WRITE"))
            setting = f"default_transaction_read_only = {state}"
            connection.execute(text(f'ALTER DATABASE "{name}" SET {setting}'))
            connection.commit()
        store.engine.dispose()  # a connection reads the setting when it opens

    switch("on")
    try:
        yield
    finally:
        switch("off")


@pytest.fixture
def post(app: FastAPI) -> Poster:
    """Posts to a server whose log nobody projects."""
    poster = Poster(TestClient(app, raise_server_exceptions=False))
    poster.enroll()
    return poster


def test_a_client_is_asked_to_wait(store: Store, post: Poster) -> None:
    body = results.sealed(results.make_result())
    with refusing_writes(store):
        refused = post.raw(body)
    assert (refused.status_code, refused.headers.get("retry-after")) == (503, "5")
    assert refused.json()["code"] == "database_unavailable"
    assert post.raw(body).status_code == 201


@pytest.mark.parametrize("path", ["/", "/api/v1/leaderboard", "/api/v1/log", "/readyz"])
def test_a_reader_is_asked_to_wait(application: FastAPI, tmp_path: Path, path: str) -> None:
    """The database has no tables."""
    application.state.store = store = Store(f"sqlite:///{tmp_path / 'empty.db'}")
    application.state.cached = {}
    http = TestClient(application, raise_server_exceptions=False)
    answer = http.get(path, headers={"Accept": "text/html"})
    store.close()
    assert (answer.status_code, answer.headers.get("retry-after")) == (503, "5")


def test_the_projector_goes_on(
    store: Store, post: Poster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(projector, "RETRY_SECONDS", 0.01)
    post(results.make_result())
    with ExitStack() as outage:
        outage.enter_context(refusing_writes(store))
        with projecting(store):
            assert wait_for(lambda: "the database does not answer the projector" in caplog.text)
            with store.reading() as session:
                assert position.lag(session) == (2, 0, None)
            outage.close()
            assert wait_for(lambda: is_projected(store))


def test_a_projector_that_cannot_ask_for_its_turn_asks_again(
    migrated_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(projector, "RETRY_SECONDS", 0.01)
    store = Store(f"sqlite:///{shutil.copy(migrated_file, tmp_path / 'server.db')}")
    with store.writing() as session:
        writer.begin(session, AUTHORITY)
        leaf = writer.Leaf("result", envelope.read(results.sealed(results.make_result())))
        writer.append(session, AUTHORITY, [leaf], datetime.now(UTC))
    with ExitStack() as outage:
        outage.enter_context(no_file_at(tmp_path / "server.db-projector"))
        with projecting(store):
            assert wait_for(lambda: "the database does not answer the projector" in caplog.text)
            outage.close()
            assert wait_for(lambda: is_projected(store))
    store.close()


def test_a_recomputation_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its database has no tables yet."""
    monkeypatch.setattr(worker, "RETRY_SECONDS", 0.01)
    store = Store(f"sqlite:///{tmp_path / 'server.db'}")
    stop = Event()
    recomputer = worker.Recomputer(store, AUTHORITY, 600, compute=invented)
    thread = Thread(target=recomputer.run, args=(stop,))
    thread.start()
    try:
        assert wait_for(lambda: "the database does not answer the recomputation" in caplog.text)
        assert thread.is_alive()
    finally:
        stop.set()
        thread.join()
        store.close()
