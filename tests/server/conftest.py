"""Servers on real databases: tests with ``store`` run on SQLite and PostgreSQL.

Of a test with several cases each runs on one of them, in turns. What is marked ``sqlite`` has no
query of its own, and runs on SQLite. The long tests run all on both.
"""

import itertools
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.fakes import postgres
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import NO_LIMITS, Poster
from tests.fakes.live import running_server
from tests.fakes.projected import Projected

from bench_server.app import create_app
from bench_server.db import migrate
from bench_server.db.store import Store, open_engine
from bench_server.db.tables import Table
from bench_server.ingest.inbox import Inbox
from bench_server.log import writer
from bench_server.log.server_keys import Authority
from bench_server.settings import Settings

_names = itertools.count(1)
DATABASES = ("sqlite", "postgresql")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        chosen = getattr(item, "callspec", None)
        if (chosen is not None and "postgresql" in chosen.id.split("-")) or (
            "cluster" in getattr(item, "fixturenames", ())
            and "database_url" not in item.fixturenames
        ):
            item.add_marker("postgresql")
    tests: dict[str, list[Any]] = {}
    for item in items:
        chosen = getattr(item, "callspec", None)
        if chosen is not None and "database_url" in chosen.params:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        _leave_for_long_tests(cases)


def _leave_for_long_tests(cases: list[Any]) -> None:
    """Mark what runs in the long tests alone, of a test that can run on both databases."""
    if len({item.callspec.params["database_url"] for item in cases}) < len(DATABASES):
        return
    numbers: dict[tuple[int, ...], int] = {}
    for item in cases:
        chosen, on_sqlite = item.callspec, item.get_closest_marker("sqlite") is not None
        case = tuple(i for name, i in sorted(chosen.indices.items()) if name != "database_url")
        turn = 0 if on_sqlite else numbers.setdefault(case, len(numbers)) % 2
        if (case or on_sqlite) and chosen.params["database_url"] != DATABASES[turn]:
            item.add_marker("long")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[postgres.Cluster]:
    running = postgres.start()
    try:
        running.make_roles(tmp_path_factory.mktemp("secrets"))
        store = Store(running.url("trainmark", postgres.OWNER))
        migrate.migrate(store.engine)
        store.close()
        yield running
    finally:
        running.stop()


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """As the tables' owner: some tests tamper. test_database_roles.py has the server's role."""
    if request.param == "sqlite":
        path = tmp_path / "server.db"
        shutil.copy(request.getfixturevalue("migrated_file"), path)
        return f"sqlite:///{path}"
    cluster: postgres.Cluster = request.getfixturevalue("cluster")
    # Emptying one database takes a tenth of the time of making another.
    engine = open_engine(cluster.url("trainmark", postgres.OWNER))
    with engine.begin() as connection:
        for table in reversed(Table.metadata.sorted_tables):
            connection.execute(table.delete())
    engine.dispose()
    return cluster.url("trainmark", postgres.OWNER)


@pytest.fixture(params=DATABASES)
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    cluster: postgres.Cluster = request.getfixturevalue("cluster")
    name = f"test_{next(_names)}"
    cluster.create(name)
    return cluster.url(name)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    opened = Store(database_url)
    yield opened
    opened.close()


@pytest.fixture
def clock() -> Callable[[], datetime]:
    seconds = itertools.count()
    start = datetime(2026, 11, 21, 4, 0, tzinfo=UTC)
    return lambda: start + timedelta(seconds=next(seconds))


@pytest.fixture(scope="session")
def application() -> FastAPI:
    return create_app(NO_LIMITS, Store("sqlite:///:memory:"), authority=AUTHORITY, stale_seconds=0)


@pytest.fixture
def authority() -> Authority:
    return AUTHORITY


@pytest.fixture
def app(
    application: FastAPI, store: Store, clock: Callable[[], datetime], authority: Authority
) -> FastAPI:
    with store.writing() as session:
        writer.begin(session, authority)
    application.state.store = store
    application.state.kept = {}
    application.state.authority = authority
    application.state.inbox = Inbox(store, authority)
    application.state.clock = clock
    application.state.settings = Settings()
    return application


@pytest.fixture
def http(app: FastAPI) -> TestClient:
    """A client whose server never hides a bug behind a 500, and whose log is always projected."""
    return TestClient(Projected(app))


@pytest.fixture
def post(http: TestClient) -> Poster:
    poster = Poster(http)
    poster.enroll()
    return poster


@pytest.fixture
def live_server(database_url: str, tmp_path: Path) -> Iterator[str]:
    with running_server(database_url, tmp_path) as address:
        yield address
