"""What a stranger without a key can take: lines, statements, turns, bytes and polls are bounded."""

import asyncio
import json
import time
from concurrent.futures import Future
from unittest.mock import AsyncMock

import httpx
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event
from starlette.types import Message, Receive, Scope, Send
from tests.fakes import results
from tests.fakes.client import Poster

from bench_server.app import create_app
from bench_server.db.store import Store
from bench_server.errors import TooManyBytes
from bench_server.ingest.batching import MOST_TOGETHER, PendingItem, Waiting
from bench_server.projection.position import Position
from bench_server.settings import Settings
from bench_server.web import bodies_in_flight, position_watch
from bench_server.web.bodies_in_flight import BodiesInFlight
from bench_server.web.position_watch import PositionWatch
from bench_server.web.turns import Turns

NDJSON = {"Content-Type": "application/x-ndjson"}


def posted(http: httpx.Client, lines: list[bytes]) -> httpx.Response:
    return http.post("/api/v1/results", content=b"\n".join(lines), headers=NDJSON)


def unknown_keys(count: int) -> list[bytes]:
    sealed = results.sealed(results.make_result())
    own = results.key_id(results.private_key()).encode()
    return [sealed.replace(own, b"%064x" % number) for number in range(count)]


def test_lines_that_are_no_envelopes_are_read_up_to_a_number(post: Poster) -> None:
    lines = [
        results.sealed(results.make_result()),
        *[b"{}"] * 30,
        results.sealed(results.make_result()),
    ]
    answers = [json.loads(line) for line in posted(post.http, lines).text.splitlines()]
    assert [answer["status"] for answer in answers] == [201, *[422] * 16, *[400] * 15]
    assert {answer["problem"]["detail"] for answer in answers[17:]} == {
        "not read: 16 lines before it are no envelopes"
    }


def test_a_batch_costs_its_address_a_request_a_line(store: Store) -> None:
    settings = Settings(address_rate="100/hour", key_rate="off")
    http = TestClient(create_app(settings, store))
    assert posted(http, unknown_keys(60)).status_code == 207
    refused = posted(http, unknown_keys(60))
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
    # More lines than the rate has cost all of it, and are not refused for ever.
    other = TestClient(create_app(settings, store))
    assert [posted(other, unknown_keys(n)).status_code for n in (150, 1)] == [207, 429]


def test_keys_of_a_batch_are_looked_up_in_one_statement(post: Poster, store: Store) -> None:
    statements: list[str] = []

    @event.listens_for(store.engine, "before_cursor_execute")
    def _note(_connection: object, _cursor: object, sql: str, *_: object) -> None:
        statements.append(sql)

    answers = posted(post.http, unknown_keys(40)).text.splitlines()
    assert {json.loads(line)["problem"]["code"] for line in answers} == {"unknown_key"}
    assert sum("signing_key" in sql for sql in statements) == 1


def test_senders_take_turns() -> None:
    """What another sender sent later is in the next group, whatever was sent before it."""
    waiting = Waiting[str, str]()
    flood = [PendingItem(f"f{number}", Future[str]()) for number in range(3 * MOST_TOGETHER)]
    waiting.add("flood", flood)
    waiting.add("honest", [PendingItem("h", Future[str]())])
    taken = [pending.item for pending in waiting.take(MOST_TOGETHER)]
    assert (taken[:3], len(taken)) == (["f0", "h", "f1"], MOST_TOGETHER)
    rest = [pending.item for pending in waiting.take(3 * MOST_TOGETHER)]
    assert taken[2:] + rest == [f"f{number}" for number in range(1, 3 * MOST_TOGETHER)]
    assert len(waiting) == 0


def test_networks_take_turns() -> None:
    """However many requests one of them sends; none holds more than its part, and those who leave
    hold none."""

    async def run(most: int, each: int) -> list[str]:
        turns, served = Turns(most, each), list[str]()
        held = [asyncio.create_task(turns.take("flood")) for _ in range(each)]
        await asyncio.gather(*held)

        async def ask(network: str) -> None:
            async with turns.turn(network):
                served.append(network)
                await asyncio.sleep(0)

        asked = [asyncio.create_task(ask(who)) for who in [*["flood"] * 5, "honest", "other"]]
        leaving = [asyncio.create_task(ask("gone")) for _ in range(2)]
        await asyncio.sleep(0)
        for task in leaving:
            task.cancel()
        for _ in held:
            await asyncio.sleep(0)
            turns.release("flood")
        await asyncio.gather(*asked)
        assert not turns._held
        assert not turns._waiting
        return served

    flood = ["flood"] * 5
    assert asyncio.run(run(1, 1)) == ["flood", "honest", "other", *flood[1:]]
    assert asyncio.run(run(2, 1))[0] == "honest"


@pytest.mark.parametrize("path", ["/", "/api/v1/results"])
def test_readers_take_turns(path: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """So do writers: each asks by the network of its client."""
    asked: list[str] = []
    take = Turns.take

    async def noted(self: Turns, network: str) -> None:
        asked.append(network)
        await take(self, network)

    monkeypatch.setattr(Turns, "take", noted)
    http = TestClient(create_app(Settings(), store), client=("192.0.2.1", 50_000))
    assert http.get(path).status_code == 200
    Poster(http).enroll()
    assert Poster(http).ask().status_code == 201
    assert asked[-2:] == ["192.0.2.1/32"] * 2
    assert len(asked) >= 3


def test_bytes_of_bodies_are_bounded_until_their_requests_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Per network, and per process; they are free again however a request ends. Networks that send
    much leave space for one that sends little."""
    bounds = {"NETWORK_BYTES": 100, "PROCESS_BYTES": 170, "LAST_BYTES": 20, "LITTLE_BYTES": 10}
    for name, bound in bounds.items():
        monkeypatch.setattr(bodies_in_flight, name, bound)

    async def sent(middleware: BodiesInFlight, host: str, length: int) -> None:
        async def receive() -> Message:
            return {"type": "http.request", "body": b"x" * length, "more_body": True}

        scope = {"type": "http", "method": "POST", "client": (host, 1), "headers": []}
        await middleware(scope, receive, AsyncMock())

    async def attack() -> list[str]:
        answered = asyncio.Event()

        async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
            await receive()
            await answered.wait()

        middleware, refused = BodiesInFlight(app), []
        held = [asyncio.create_task(sent(middleware, "192.0.2.1", 90))]
        await asyncio.sleep(0)
        for host, length in (("192.0.2.1", 20), ("192.0.2.2", 70)):
            with pytest.raises(TooManyBytes) as error:
                await sent(middleware, host, length)
            refused.append(error.value.detail.split(" may")[0])
        for host, length in (("192.0.2.2", 60), ("192.0.2.3", 10), ("192.0.2.4", 10)):
            held.append(asyncio.create_task(sent(middleware, host, length)))
        await asyncio.sleep(0)
        with pytest.raises(TooManyBytes):
            await sent(middleware, "192.0.2.5", 1)
        answered.set()
        await asyncio.gather(*held)
        assert not middleware.by_network
        return refused

    assert asyncio.run(attack()) == ["an address", "this server holds 0 MiB at a time"]


def test_a_body_beyond_the_bound_may_be_sent_again(
    post: Poster, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = results.sealed(results.make_result())
    with monkeypatch.context() as tight:
        tight.setattr(bodies_in_flight, "NETWORK_BYTES", len(body) - 1)
        refused = post.raw(body)
    assert (refused.status_code, refused.json()["code"]) == (503, "too_many_bytes")
    assert int(refused.headers["retry-after"]) > 0
    assert post.raw(body).status_code == 201


def test_many_who_wait_ask_the_database_as_often_as_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def projected(_store: Store) -> Position:
        asked.append(time.monotonic())
        return Position(7, None)

    monkeypatch.setattr(position_watch, "projected", projected)

    async def wait() -> float:
        watch, began = PositionWatch(), time.monotonic()
        indexes = [*range(7), *[7] * 200]
        await asyncio.gather(*(watch.applied(store, index, 0.4) for index in indexes))
        assert not watch._waiting
        return time.monotonic() - began

    assert asyncio.run(wait()) >= 0.4
    assert 1 <= len(asked) <= 1 + 0.4 / position_watch.POLL_SECONDS + 8
