"""Asks: the draw of a day, who may answer it, and that a replay changes nothing."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select
from tests.fakes import results
from tests.fakes.client import Poster
from tests.fakes.projected import project
from tests.fakes.waiting import wait_for

from bench_agent.remote import asks as remote
from bench_protocol.payload.result import Asked
from bench_protocol.trust import asks
from bench_protocol.trust.asks import HardwareSetup
from bench_server.db.store import Store
from bench_server.db.tables import Ask, AskDay, Measurement, Owner
from bench_server.projection import asks as projected_asks
from bench_server.projection import reindex
from bench_server.projection.projector import Projector

DAY = datetime(2026, 11, 22, 1, tzinfo=UTC)
OTHER = results.private_key(2)


def at(app: FastAPI, moment: datetime) -> None:
    ticks = iter(range(10**6))
    app.state.clock = lambda: moment + timedelta(seconds=next(ticks))


def wanted(post: Poster, hardware: str | None = None) -> dict[str, Any]:
    answer = post.http.get("/api/v1/asks", params={"hardware": hardware} if hardware else {})
    assert answer.status_code == 200
    document: dict[str, Any] = answer.json()
    return document


def setup_of(ask: dict[str, Any]) -> HardwareSetup:
    return HardwareSetup(*(ask[name] for name in HardwareSetup._fields))


@pytest.fixture
def drawn(app: FastAPI, post: Poster) -> dict[str, Any]:
    """The draw of a second day, after one owner measured one set-up on the first."""
    post.made()
    at(app, DAY)
    post.enroll(OTHER)
    return wanted(post)


def answer(post: Poster, draw: dict[str, Any], **changes: Any) -> str:
    ask = draw["asks"][0]
    named = {"root": draw["root"], "reason": ask["reason"], "result": ask["result"]}
    result = results.make_result(
        key=OTHER, machine=results.make_machine(), witness=True, asked=Asked(**{**named, **changes})
    )
    posted = post.raw(results.sealed(post.bound(result), OTHER))
    assert posted.status_code == 201, posted.text
    identity: str = posted.json()["id"]
    return identity


def test_nothing_is_drawn_before_a_second_day(post: Poster) -> None:
    post.made()
    assert wanted(post) == {"day": None, "root": None, "size": None, "asks": []}


def test_anyone_can_repeat_the_draw(drawn: dict[str, Any], post: Poster) -> None:
    assert (drawn["day"], drawn["size"]) == ("2026-11-22", 2)
    record = post.http.get("/api/v1/log/entries?start=1").json()["records"][0]
    lines = record["checkpoint"].splitlines()
    assert lines[1] == "2"
    (ask,) = drawn["asks"]
    # The fastest figure of a workload is the top of its board, whoever measured it.
    assert (ask["reason"], ask["rate"]) == ("board_top", 1.0)
    assert ask["id"] == asks.ask_id(drawn["root"], setup_of(ask))
    assert asks.is_drawn(drawn["root"], setup_of(ask), ask["reason"])
    assert wanted(post, ask["hardware_slug"]) == drawn
    assert wanted(post, "nothing-like-it")["asks"] == []


def test_the_agent_answers_what_it_reads_of_the_draw(drawn: dict[str, Any], post: Poster) -> None:
    def asked_of_server(request: httpx.Request) -> httpx.Response:
        return post.http.get(request.url.raw_path.decode())

    transport = httpx.MockTransport(asked_of_server)
    slug = drawn["asks"][0]["hardware_slug"]
    ((ask, named),) = remote.wanted("http://server", None, [slug, "nothing"], transport=transport)
    identity = answer(post, drawn, **named.model_dump())
    assert ask.setup == setup_of(drawn["asks"][0])
    found = post.http.get(f"/api/v1/results/{identity}").json()
    assert found["ask_id"] == drawn["asks"][0]["id"]


def test_a_sample_is_drawn_at_its_rate() -> None:
    roots = [f"{number:064x}" for number in range(5_000)]
    setup = HardwareSetup("h", "0" * 64, "torch", "cpu", "tuned", 64, "float32", "real", "long")
    share = sum(asks.is_drawn(root, setup, "sample") for root in roots) / len(roots)
    assert 0.01 < share < 0.03
    assert all(asks.is_drawn(root, setup, "change") for root in roots)


def test_an_answer_is_counted_and_a_replay_keeps_it(
    drawn: dict[str, Any], post: Poster, store: Store
) -> None:
    identity = answer(post, drawn)
    found = post.http.get(f"/api/v1/results/{identity}").json()
    assert found["ask_id"] == drawn["asks"][0]["id"]
    assert post.http.get(f"/api/v1/machines/{found['machine_id']}").json()["asks_answered"] == 1
    assert "answered 1 ask" in post.http.get(f"/machines/{found['machine_id']}").text
    assert "answers an ask of this server" in post.http.get(f"/results/{identity}").text
    with store.writing() as session:
        session.delete(session.get_one(Ask, found["ask_id"]))  # a week later
    reindex.reindex(store)
    assert post.http.get(f"/api/v1/results/{identity}").json()["ask_id"] == found["ask_id"]


@pytest.mark.parametrize(
    "change", [{"root": "0" * 64}, {"reason": "outlier"}, {"result": "0" * 16}, {"result": None}]
)
def test_an_ask_that_was_not_drawn_is_not_answered(
    drawn: dict[str, Any], post: Poster, change: dict[str, Any]
) -> None:
    identity = answer(post, drawn, **change)
    assert post.http.get(f"/api/v1/results/{identity}").json()["ask_id"] is None
    assert "did not draw" in post.http.get(f"/results/{identity}").text


def test_a_replay_draws_nothing_again(drawn: dict[str, Any], post: Poster, store: Store) -> None:
    reindex.reindex(store)
    assert wanted(post) == drawn
    with store.reading() as session:
        assert [day.day for day in session.scalars(select(AskDay))] == ["2026-11-22"]


def test_a_batch_ends_where_a_day_does(app: FastAPI, post: Poster, store: Store) -> None:
    """The draw follows from the entries before its day, whatever the batches."""
    post.made()
    project(store)
    with store.reading() as session:
        assert len(session.scalars(select(Measurement)).all()) == 1
    app.state.clock, clock = (lambda: DAY), app.state.clock
    raw = results.sealed(results.make_result(step_ns=900_000, run_id="f" * 32))
    app.state.inbox.accept([raw], clock(), lambda _: None)[0].result(10)
    app.state.inbox.accept(
        [results.sealed(results.make_result(step_ns=800_000, run_id="e" * 32))], DAY, lambda _: None
    )[0].result(10)
    project(store)
    with store.reading() as session:
        (day,) = session.scalars(select(AskDay))
    assert (day.day, day.size) == ("2026-11-22", 3)


@pytest.mark.parametrize("quiet", [False, True])
def test_a_draw_keeps_no_writer_waiting(
    app: FastAPI, post: Poster, store: Store, monkeypatch: pytest.MonkeyPatch, quiet: bool
) -> None:
    """Results are accepted while it reads, for seconds on a large log."""
    post.made()
    project(store)
    written: list[bool] = []
    changes = projected_asks._changes

    def meanwhile(*arguments: Any) -> Any:
        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        writer.join(10)
        written.append(not writer.is_alive())
        return changes(*arguments)

    def write() -> None:
        with store.writing() as session:
            session.add(Owner(label="meanwhile"))

    monkeypatch.setattr(projected_asks, "_changes", meanwhile)
    if quiet:
        Projector(store).draw(DAY.date())
    else:
        at(app, DAY)
        post.enroll(OTHER)
    assert written == [True]
    assert wanted(post)["day"] == "2026-11-22"


def test_the_projector_draws_when_a_day_begins(post: Poster, store: Store) -> None:
    post.made()
    stop = threading.Event()
    thread = threading.Thread(target=Projector(store, clock=lambda: DAY).run, args=(stop,))
    thread.start()
    wait_for(lambda: wanted(post)["day"])
    stop.set()
    thread.join()
    assert wanted(post)["day"] == "2026-11-22"


def test_a_second_quiet_day_has_the_asks_of_the_first(
    app: FastAPI, post: Poster, store: Store
) -> None:
    """The log has the same root, so its asks have the same ids. The projection goes on."""
    post.made()
    project(store)
    ids = []
    for quiet in range(3):
        for _ in range(2):
            Projector(store).draw(DAY.date() + timedelta(quiet))
        ids.append([ask["id"] for ask in wanted(post)["asks"]])
    assert len(ids[0]) == 1
    assert ids == [ids[0]] * 3
    assert wanted(post)["day"] == "2026-11-24"
    at(app, DAY + timedelta(5))
    post.enroll(OTHER)
    assert wanted(post)["day"] == "2026-11-27"
