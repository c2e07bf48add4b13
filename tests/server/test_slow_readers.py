"""Clients that read slowly, are many or are cut off leave others connections and threads."""

import asyncio
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.types import Message
from tests.fakes import results
from tests.fakes.client import JSON, Poster

from bench_server.db import store
from bench_server.web.routes import deps

# More than the server has threads, or connections to the database.
CLIENTS = 41
TIMES = 4
FOREVER_SECONDS = 100
JSON_TYPE = (b"content-type", b"application/json")
EXPORT = "/api/v1/export.csv"
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def scope_of(path: str) -> dict[str, Any]:
    return {
        "type": "http", "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(b"host", b"x")], "client": ("127.0.0.1", 1), "server": ("x", 80),
    }  # fmt: skip


class SlowClient:
    """A client in this process that reads nothing of its answer but the status."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._leaves = asyncio.Event()
        self.status: asyncio.Future[int] = asyncio.Future()

    async def get(self, path: str) -> None:
        async def receive() -> Message:
            await self._leaves.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.status.set_result(message["status"])
            else:
                await self._leaves.wait()

        await self._app(scope_of(path), receive, send)

    def leave(self) -> None:
        self._leaves.set()


def outcome(app: FastAPI, path: str) -> tuple[Counter[int], list[int]]:
    """In a thread, because a browser of other tests keeps an event loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, beside_slow_clients(app, path)).result()


async def beside_slow_clients(app: FastAPI, path: str) -> tuple[Counter[int], list[int]]:
    """The statuses of a path's slow clients, and then of one that reads and posts."""
    slow = [SlowClient(app) for _ in range(CLIENTS)]
    tasks = [asyncio.create_task(client.get(path)) for client in slow]
    try:
        async with asyncio.timeout(FOREVER_SECONDS):
            statuses = Counter(await asyncio.gather(*(client.status for client in slow)))
            transport = httpx.ASGITransport(app, client=("192.0.2.9", 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
                answers = [await http.get(each) for each in ("/", "/api/v1/results", path)]
                body = results.sealed(results.make_result())
                answers.append(await http.post("/api/v1/results", content=body, headers=JSON))
    finally:
        for client in slow:
            client.leave()
        await asyncio.gather(*tasks)
    return statuses, [answer.status_code for answer in answers]


def test_slow_readers_of_exports_leave_others_their_connections(
    app: FastAPI, post: Poster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deps, "EXPORT_WAIT_SECONDS", 0.1)
    post.made()
    statuses, others = outcome(app, EXPORT)
    assert others == [200, 200, 200, 201]  # of another address
    assert statuses == {200: deps.EXPORTS_EACH, 503: CLIENTS - deps.EXPORTS_EACH}
    assert post.http.get(EXPORT).status_code == 200  # they gave back what they had


@pytest.fixture
def few_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small pooler gives a server fewer connections than the requests that may hold one."""
    few = {"pool_size": 3, "max_overflow": 0, "pool_timeout": FOREVER_SECONDS / 5}
    monkeypatch.setattr(store, "_POOL", few)


@pytest.mark.usefixtures("few_connections")
def test_many_clients_share_few_connections(app: FastAPI, post: Poster) -> None:
    id = post.made()
    paths = ["/api/v1/log", f"/api/v1/results/{id}"]

    async def statuses() -> Counter[int]:
        transport = httpx.ASGITransport(app)
        async with (
            asyncio.timeout(FOREVER_SECONDS),
            httpx.AsyncClient(transport=transport, base_url="http://x", timeout=None) as http,
        ):
            clients = [repeating(http, path) for path in paths for _ in range(2 * CLIENTS)]
            return sum(await asyncio.gather(*clients), Counter())

    async def repeating(http: httpx.AsyncClient, path: str) -> Counter[int]:
        return Counter([(await http.get(path)).status_code for _ in range(TIMES)])

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(asyncio.run, statuses()).result() == {
            200: 2 * len(paths) * CLIENTS * TIMES
        }


def test_a_request_that_the_end_of_the_server_cuts_off_may_be_repeated(app: FastAPI) -> None:
    sent: list[Message] = []

    async def cut_off() -> None:
        async def receive() -> Message:
            return await asyncio.Future()

        async def send(message: Message) -> None:
            sent.append(message)

        scope = scope_of("/api/v1/results") | {"method": "POST"}
        scope["headers"] = [(b"host", b"x"), JSON_TYPE]
        task = asyncio.create_task(app(scope, receive, send))
        await asyncio.sleep(0.2)
        task.cancel()
        await task

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, cut_off()).result()
    assert sent[0]["status"] == 503
    assert (b"retry-after", b"5") in sent[0]["headers"]
    assert json.loads(sent[1]["body"])["code"] == "server_ends"


@pytest.mark.parametrize("path", ["/api/v1/results", "/"])
def test_slow_readers_of_answers_hold_no_connection(app: FastAPI, post: Poster, path: str) -> None:
    post.made()
    statuses, others = outcome(app, path)
    assert others == [200, 200, 200, 201]
    assert statuses == {200: CLIENTS}
