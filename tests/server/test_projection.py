"""The projector: pending until applied; stops, goes on and is started again."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select
from tests.fakes import results, said
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster
from tests.fakes.projected import is_projected, project, rows
from tests.fakes.statements import statements
from tests.fakes.waiting import wait_for
from typer.testing import CliRunner

from bench_server.answers import stored_results
from bench_server.cli.main import main as cli
from bench_server.cli.project import projecting
from bench_server.db.store import Store
from bench_server.db.tables import Measurement, Submission, table_of
from bench_server.ingest import moderation
from bench_server.projection import apply, asks, outliers, position, projector, reindex
from bench_server.projection.measurements import ResultEntry
from bench_server.projection.projector import ProjectionStopped, Projector

KEYS = [results.private_key(seed) for seed in range(1, 5)]
IDS = [results.key_id(key) for key in KEYS]
FOREVER_SECONDS = 30


@pytest.fixture
def unprojected(app: FastAPI) -> Poster:
    post = Poster(TestClient(app))
    for key in KEYS:
        post.enroll(key)
    return post


def test_catching_up_ends_although_the_log_grows(unprojected: Poster, store: Store) -> None:
    for _ in range(2):
        unprojected.made()
    with store.reading() as session:
        size = position.lag(session).size
    more, positions = 5, []

    def progress(position: int) -> None:
        nonlocal more
        positions.append(position)
        if more:
            unprojected.made()
            more -= 1

    assert Projector(store, batch=1).catch_up(progress) == size
    assert positions == list(range(1, size + 1))


@pytest.mark.parametrize("few", [3, outliers.FEW])
def test_an_outlier_is_compared_with_earlier_entries_alone(
    unprojected: Poster, store: Store, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """In batches of any size: of six owners' results the last one is an outlier."""
    monkeypatch.setattr(outliers, "FEW", few)
    others = [results.private_key(seed) for seed in range(11, 16)]
    for key in others:
        unprojected.enroll(key)
    for number, key in enumerate(others):
        unprojected.made(key=key, step_ns=1_000_000 + number)
    slow = unprojected.made(step_ns=30_000_000)
    for key in others:
        unprojected.made(key=key, step_ns=30_000_000)
    project(store)
    in_one = rows(store)
    with store.reading() as session:
        row = session.get_one(Measurement, slow)
    assert '"owners":5' in row.verdicts
    with store.writing() as session:
        session.execute(table_of(Submission).update().values(outlier=None))
    reindex.clear(store)
    Projector(store, batch=1).catch_up()
    assert rows(store) == in_one


def test_a_result_is_pending_until_it_is_projected(unprojected: Poster, store: Store) -> None:
    http = unprojected.http
    identity = unprojected.made()
    pending = http.get(f"/api/v1/results/{identity}").json()
    assert pending["status"] == "pending"
    assert pending["samples_per_second"] == 64_000
    assert (pending["ranked"], pending["trust_level"], pending["verdicts"]) == (None, None, [])
    assert http.get(f"/api/v1/results/{identity}/receipt").json()["log_index"] == len(KEYS)
    page = http.get(f"/results/{identity}")
    assert page.status_code == 200
    assert "Accepted as log entry 4, pending." in page.text
    assert http.get("/api/v1/leaderboard").json()["rows"] == []
    assert http.get("/readyz").json() == {"status": "ok", "entries": 5, "projected": 0}
    assert "trainmark_projection_lag_entries 5.0" in http.get("/metrics").text
    project(store)
    assert http.get(f"/api/v1/results/{identity}").json()["status"] == "measured"
    assert len(http.get("/api/v1/leaderboard").json()["rows"]) == 1
    assert http.get("/readyz").json()["projected"] == 5


def test_a_request_waits_until_the_result_is_projected(unprojected: Poster, store: Store) -> None:
    identity = unprojected.made()
    address = f"/api/v1/results/{identity}"
    assert unprojected.http.get(f"{address}?wait=0.2").json()["status"] == "pending"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(unprojected.http.get, f"{address}?wait={FOREVER_SECONDS}")
        time.sleep(0.2)
        assert not waiting.done()
        project(store)
        answer = waiting.result(FOREVER_SECONDS)
    assert answer.json()["status"] == "measured"
    # The answer includes the result's entry.
    assert answer.headers["trainmark-as-of"] == str(len(KEYS) + 1)
    assert unprojected.http.get(f"{address}?wait=31").status_code == 422


def test_a_result_and_its_position_are_of_one_moment(
    unprojected: Poster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is projected after the position was read and before the row is."""
    identity = unprojected.made()
    read = stored_results.result_with_id

    def projected_meanwhile(*arguments: Any) -> Any:
        project(store)
        return read(*arguments)

    monkeypatch.setattr(stored_results, "result_with_id", projected_meanwhile)
    answer = unprojected.http.get(f"/api/v1/results/{identity}")
    assert (answer.json()["status"], answer.headers["trainmark-as-of"]) == ("pending", "0")


def test_acts_and_posts_before_the_projection_are_answered(
    unprojected: Poster, store: Store
) -> None:
    """Acceptance knows the log, not the projection of it."""
    hidden, flagged, gone = (unprojected.made() for _ in range(3))
    assert said.act(unprojected, "hide", result=hidden).status_code == 200
    moderation.decide(store, AUTHORITY, said.NOW, "flag", result=flagged, reason="odd")
    assert said.act(unprojected, "show", result=flagged).json()["code"] == "conflict"
    assert said.act(unprojected, "withdraw", result=gone).status_code == 200
    assert unprojected.http.get(f"/api/v1/results/{gone}").status_code == 410
    listed = said.act(unprojected, "list").json()["results"]
    assert {row["id"]: row["trust_level"] for row in listed} == {hidden: None, flagged: None}
    assert {(row["framework"], row["device"], row["recipe"]) for row in listed} == {
        ("tensorflow", "cpu", "naive")
    }
    assert all(row["samples_per_second"] > 0 for row in listed)
    project(store)
    with store.reading() as session:
        states = {row.submission_id: row.moderation for row in session.scalars(select(Measurement))}
    assert states == {hidden: "hidden", flagged: "flagged"}


def test_accepting_a_result_touches_no_projected_table(unprojected: Poster, store: Store) -> None:
    unprojected.made()
    counts = []
    for _ in range(2):
        with statements(store) as seen:
            unprojected.made()
        texts = " ".join(text for text, _ in seen)
        for table in ("measurement", "aggregate", "environment", "published_figure"):
            assert f" {table} " not in texts, table
        counts.append(len(seen))
    assert counts[0] == counts[1]


def test_an_entry_that_cannot_be_applied_stops_the_projector_there(
    unprojected: Poster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad, later = (unprojected.made() for _ in range(3))
    row = ResultEntry.row

    def fail(entry: ResultEntry, *about: Any) -> Any:
        if entry.submission_id == bad:
            raise ArithmeticError("no such number")
        return row(entry, *about)

    monkeypatch.setattr(ResultEntry, "row", fail)
    with pytest.raises(ProjectionStopped, match="entry 5: ArithmeticError: no such number"):
        project(store)
    http = unprojected.http
    assert http.get("/readyz").json() == {
        "status": "ok",
        "entries": 7,
        "projected": 5,
        "projection_stopped": "entry 5: ArithmeticError: no such number",
    }
    assert "trainmark_projection_stopped 1.0" in http.get("/metrics").text
    behind = "<strong>Newer results are missing here.</strong>"
    assert behind in http.get("/").text
    assert behind in http.get("/machines/not-there-yet", headers={"Accept": "text/html"}).text
    statuses = [http.get(f"/api/v1/results/{i}").json()["status"] for i in (good, bad, later)]
    assert statuses == ["measured", "pending", "pending"]
    assert unprojected.made()
    monkeypatch.undo()
    project(store)
    assert http.get("/readyz").json() == {"status": "ok", "entries": 8, "projected": 8}
    assert behind not in http.get("/").text


def test_a_fault_of_a_batch_alone_is_a_warning(
    unprojected: Poster,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for _ in range(2):
        unprojected.made()
    real = apply.apply_entries

    def fail(connection: Any, entries: Any) -> None:
        if len(entries) > 1:
            raise ArithmeticError("too many at once")
        real(connection, entries)

    monkeypatch.setattr(apply, "apply_entries", fail)
    project(store)
    said = {(r.levelname, r.getMessage()) for r in caplog.records if "at once" in r.message}
    assert ("WARNING", "cannot apply 128 entries from 0 at once: too many at once") in said


def test_an_error_at_an_entry_that_is_no_longer_the_next_one_stops_nothing(
    unprojected: Poster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reindex that begins meanwhile is not stopped at an entry that has no fault."""
    project(store)
    unprojected.made()

    def failing(*_: Any) -> None:
        reindex.clear(store)
        raise ArithmeticError("no such number")

    with monkeypatch.context() as patch:
        patch.setattr(projector, "read_batch", failing)
        assert Projector(store).step() == 0
    with store.reading() as session:
        assert position.read(session.connection()) == (0, None)
    project(store)


def test_a_batch_is_applied_whole_or_not_at_all(
    unprojected: Poster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill between the rows and the position leaves neither."""
    unprojected.made()
    before = rows(store)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(position, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            Projector(store).step()
    assert rows(store) == before
    project(store)
    assert rows(store) != before


def test_one_projector_of_several_follows_the_log(unprojected: Poster, store: Store) -> None:
    """Others wait for its lock; when it ends, one of them goes on."""
    for _ in range(3):
        unprojected.made()
    with store.exclusive("projector") as first:
        assert first.held()
        with store.exclusive("projector") as second:
            assert not second.held()
        with projecting(store):
            time.sleep(0.3)
            with store.reading() as session:
                assert position.lag(session).entries == 7
    with projecting(store), projecting(store):
        assert wait_for(lambda: is_projected(store))
    with store.reading() as session:
        assert len(session.scalars(select(Measurement)).all()) == 3


def test_a_projector_goes_on_after_an_error_without_an_entry(
    unprojected: Poster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(store)
    monkeypatch.setattr(projector, "RETRY_SECONDS", 0.05)
    failed, draw = threading.Event(), asks.draw

    def failing(*_: Any) -> None:
        monkeypatch.setattr(asks, "draw", draw)
        failed.set()
        raise ZeroDivisionError

    monkeypatch.setattr(asks, "draw", failing)
    with projecting(store):
        assert failed.wait(FOREVER_SECONDS)
        unprojected.made()
        assert wait_for(lambda: is_projected(store), FOREVER_SECONDS)


def test_a_reindex_beside_a_projector_ends_with_the_same_rows(
    unprojected: Poster, store: Store
) -> None:
    for step_ns in range(1_000_000, 1_000_020):
        unprojected.made(step_ns=step_ns)
    project(store)
    before = rows(store)
    stop = threading.Event()
    thread = threading.Thread(target=Projector(store, batch=3).run, args=(stop,))
    thread.start()
    try:
        assert reindex.reindex(store) == 24
    finally:
        stop.set()
        thread.join()
    project(store)
    assert rows(store) == before


def test_the_project_command_catches_up(
    unprojected: Poster, store: Store, database_url: str
) -> None:
    unprojected.made()
    done = CliRunner().invoke(cli, ["project", "--once", "--database-url", database_url])
    assert done.exit_code == 0, done.output
    assert done.output == "the boards include 5 log entries\n"
    with store.reading() as session:
        assert position.lag(session).entries == 0
