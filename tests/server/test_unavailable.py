"""A database that takes no writes: clients are asked to wait, and all parts go on afterwards."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event, text
from tests.fakes import results, said
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import JSON, Poster
from tests.fakes.live import running_server
from tests.fakes.projected import is_projected
from tests.fakes.seeding import invented
from tests.fakes.waiting import wait_for

from bench_server.cli.project import projecting
from bench_server.db.store import Store
from bench_server.projection import position, projector
from bench_server.recompute import worker

FOREVER_SECONDS = 30
# More than the server has threads.
CLIENTS = 48


def refusing_writes(store: Store, turn: str = "queue") -> AbstractContextManager[None]:
    """PostgreSQL is read-only, as a standby is; beside SQLite's file no turn can be opened."""
    if store.engine.dialect.name == "postgresql":
        return read_only(store)
    return no_file_at(Path(f"{store.engine.url.database}-{turn}"))


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


def test_a_reader_is_asked_to_wait(application: FastAPI, tmp_path: Path) -> None:
    application.state.store = store = Store(f"sqlite:///{tmp_path / 'empty.db'}")
    application.state.kept = {}
    http = TestClient(application, raise_server_exceptions=False)
    for path in ("/", "/api/v1/leaderboard", "/api/v1/log", "/readyz"):
        answer = http.get(path, headers={"Accept": "text/html"})
        assert (answer.status_code, answer.headers.get("retry-after")) == (503, "5"), path
    store.close()


def test_no_request_waits_for_a_connection_on_the_event_loop(store: Store, post: Poster) -> None:
    """The connections that it would wait for are given back by the event loop."""
    taken: Counter[bool] = Counter()
    event.listen(store.engine, "checkout", lambda *_: taken.update([on_event_loop()]))
    post.enroll(results.private_key(2))
    identity = post(results.make_result())
    assert post.ask().status_code == 201
    for kind in ("list", "export"):
        assert said.act(post, kind).status_code == 200
    for path in ("/", "/results", "/compare", "/api/v1/log", f"/api/v1/results/{identity}"):
        assert post.http.get(path).status_code == 200
    assert taken[False] >= 10
    assert taken[True] == 0


@pytest.mark.process
def test_more_clients_than_threads_are_all_answered(database_url: str, tmp_path: Path) -> None:
    """Writers wait for each other in threads, while readers have connections and need threads."""
    rates = {f"BENCH_SERVER_{name}_RATE": "off" for name in ("ADDRESS", "KEY", "ENROLL")}

    def visit(number: int) -> list[int]:
        body = results.enrollment(results.private_key(number + 1))
        statuses = []
        with httpx.Client(base_url=address, headers=JSON, timeout=120) as http:
            for path in ("/api/v1/results", "/api/v1/log", "/api/v1/log/entries?start=0"):
                statuses.append(http.post("/api/v1/keys", content=body).status_code)
                statuses.append(http.get(path).status_code)
        return statuses

    with (
        running_server(database_url, tmp_path, **rates) as address,
        ThreadPoolExecutor(CLIENTS) as pool,
    ):
        statuses = Counter(status for each in pool.map(visit, range(CLIENTS)) for status in each)
    assert statuses == {201: CLIENTS, 200: 5 * CLIENTS}


def on_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def test_the_projector_goes_on(
    store: Store, post: Poster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(projector, "RETRY_SECONDS", 0.01)
    for turn in ("queue", "projector"):
        post(results.make_result())
        caplog.clear()
        with ExitStack() as outage:
            outage.enter_context(refusing_writes(store, turn))
            with projecting(store):
                assert wait_for(lambda: "the database does not answer the projector" in caplog.text)
                with store.reading() as session:
                    lag = position.lag(session)
                assert (lag.entries > 0, lag.stopped_reason) == (True, None)
                outage.close()
                assert wait_for(lambda: is_projected(store))


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
