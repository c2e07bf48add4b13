"""Questions on a streaming replica of PostgreSQL: what it answers, and when the primary does."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError
from tests.fakes import postgres
from tests.fakes.client import Poster
from tests.fakes.statements import statements
from tests.fakes.waiting import wait_for
from typer.testing import CliRunner

from bench_server.cli.main import main as cli
from bench_server.db.store import Store
from bench_server.web import replica as replicas
from bench_server.web.replica import Replica

BOARD = "/api/v1/leaderboard?workload=mnist-cnn"
LIST = "/api/v1/results"
pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture(scope="module")
def standby(cluster: postgres.Cluster) -> Iterator[postgres.Cluster]:
    made = cluster.standby()
    yield made
    made.stop()


class Copy:
    """The replica of the application, with a clock that the test moves."""

    def __init__(self, app: FastAPI, standby: postgres.Cluster) -> None:
        self.now = 0.0
        self.store = Store(standby.url("trainmark"), replica=True)
        self.replica = Replica(self.store, clock=lambda: self.now)
        self.primary: Store = app.state.store

    def run(self, statement: str) -> None:
        with self.store.reading() as session:
            session.connection().exec_driver_sql(statement)

    def follow(self) -> None:
        """Wait until the replica has what the primary has."""
        assert wait_for(lambda: replicas.projected(self.store) == replicas.projected(self.primary))
        self.now += replicas.LOOK_SECONDS


@pytest.fixture
def copy(app: FastAPI, standby: postgres.Cluster) -> Iterator[Copy]:
    made = Copy(app, standby)
    app.state.replica = made.replica
    made.follow()
    yield made
    app.state.replica = None
    made.run("SELECT pg_wal_replay_resume()")
    made.store.close()


def asked(app: FastAPI, path: str, at_least: int = 0) -> tuple[int, str]:
    """The number of entries of an answer, and its text."""
    answer = TestClient(app).get(path, headers={"Trainmark-At-Least": str(at_least)})
    assert answer.status_code == 200, answer.text
    return int(answer.headers["trainmark-as-of"]), answer.text


def test_the_replica_answers_questions_alone(app: FastAPI, post: Poster, copy: Copy) -> None:
    post.made()
    copy.follow()
    asked(app, BOARD)  # reads the primary's position, once a second
    app.state.cached.clear()
    with statements(copy.primary) as given:
        for path in (
            BOARD,
            "/",
            "/machines",
            "/api/v1/results",
            "/api/v1/export.csv",
            "/feed.atom",
        ):
            assert asked(app, path)[0] == 2
    assert given == []
    with pytest.raises(DBAPIError, match="read-only"), copy.store.writing() as session:
        session.connection().exec_driver_sql("DELETE FROM projection")


def test_a_replica_that_lags_names_its_own_entries(app: FastAPI, post: Poster, copy: Copy) -> None:
    post.made()
    copy.follow()
    copy.run("SELECT pg_wal_replay_pause()")
    before = asked(app, BOARD)
    newest = post.made()
    assert asked(app, BOARD) == before
    as_of, text = asked(app, LIST)
    assert (before[0], as_of, newest in text) == (2, 2, False)
    # A client that has seen more, or asks for what it has just sent, is answered by the primary.
    for path, at_least in ((LIST, 3), (f"/api/v1/results/{newest}?wait=5", 0)):
        as_of, text = asked(app, path, at_least)
        assert (as_of, newest in text) == (3, True)
    assert asked(app, f"/results/{newest}")[0] == 3
    assert asked(app, BOARD, at_least=3)[0] == 3
    assert TestClient(app).get("/checkpoint").text.split("\n")[1] == "3"
    # Each answer is in the cache with its own entries.
    assert asked(app, BOARD) == before
    lag = {"state": "used", "projected": 2, "lag_entries": 1}
    assert TestClient(app).get("/readyz").json()["replica"] == lag
    metrics = TestClient(app).get("/metrics").text
    assert "trainmark_replica_lag_entries 1.0" in metrics
    assert "trainmark_replica_used 1.0" in metrics


def test_the_primary_answers_until_a_late_replica_has_caught_up(
    app: FastAPI, post: Poster, copy: Copy
) -> None:
    assert asked(app, BOARD)[0] == 1
    copy.run("SELECT pg_wal_replay_pause()")
    post.made()
    copy.now += replicas.LOOK_SECONDS
    assert asked(app, BOARD)[0] == 1
    copy.now += replicas.MOST_SECONDS_BEHIND - replicas.LOOK_SECONDS
    assert asked(app, BOARD)[0] == 1  # the new entry is at most 30 s old
    copy.now += 0.1
    assert asked(app, BOARD)[0] == 2
    assert TestClient(app).get("/readyz").json()["replica"]["state"] == "behind"
    assert "trainmark_replica_used 0.0" in TestClient(app).get("/metrics").text
    copy.run("SELECT pg_wal_replay_resume()")
    copy.follow()
    with statements(copy.primary) as given:
        asked(app, "/machines")
    assert len(given) == 1  # its position
    assert copy.replica.state == "used"


@pytest.mark.parametrize("asked_before", [True, False])
def test_no_answer_is_later_than_the_limit_after_a_pause_of_questions(
    app: FastAPI, post: Poster, copy: Copy, asked_before: bool
) -> None:
    if asked_before:
        assert asked(app, BOARD)[0] == 1
    copy.run("SELECT pg_wal_replay_pause()")
    post.made()
    copy.now += replicas.MOST_SECONDS_BEHIND + 1
    assert asked(app, BOARD)[0] == 2
    copy.run("SELECT pg_wal_replay_resume()")
    copy.follow()
    asked(app, BOARD)
    assert copy.replica.state == "used"


def test_reading_survives_the_loss_of_either_database(
    app: FastAPI, post: Poster, copy: Copy, caplog: pytest.LogCaptureFixture
) -> None:
    post.made()
    copy.follow()
    nowhere = "postgresql+psycopg://x@127.0.0.1:1/x"
    app.state.store = Store(nowhere)
    copy.now += replicas.LOOK_SECONDS
    assert asked(app, BOARD)[0] == 2
    app.state.store = copy.primary
    copy.replica.store = Store(nowhere, replica=True)
    with counted_connections(copy.replica.store) as tried:
        assert [asked(app, BOARD)[0] for _ in range(3)] == [2, 2, 2]
    assert len(tried) == 1
    assert caplog.text.count("the read replica is away") == 1
    assert TestClient(app).get("/readyz").json()["replica"] == {"state": "away"}
    copy.replica.store = copy.store
    copy.now += replicas.AWAY_SECONDS
    assert asked(app, "/machines")[0] == 2
    assert copy.replica.state == "used"


@contextmanager
def counted_connections(store: Store) -> Iterator[list[int]]:
    """Attempts to connect."""
    tried: list[int] = []

    def note(*_: Any) -> None:
        tried.append(1)

    event.listen(store.engine, "do_connect", note)
    yield tried
    event.remove(store.engine, "do_connect", note)


@pytest.mark.parametrize(
    ("primary", "read"),
    [
        ("sqlite:///x.db", "postgresql+psycopg://x@127.0.0.1/secret"),
        ("postgresql+psycopg://x@127.0.0.1/x", "sqlite:///secret.db"),
        ("postgresql+psycopg://x@127.0.0.1/x", "secret"),
    ],
)
def test_a_replica_is_of_postgresql(
    primary: str, read: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_SERVER_READ_DATABASE_URL", read)
    done = CliRunner().invoke(cli, ["migrate", "--database-url", primary])
    assert done.exit_code == 2
    assert "BENCH_SERVER_READ_DATABASE_URL: " in done.stderr
    assert "is no address of PostgreSQL; wanted: a streaming replica" in done.stderr
    assert "secret" not in done.stderr
