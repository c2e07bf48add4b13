"""Kept answers: the same while the log is, and never older than the log."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from starlette.types import Message
from tests.fakes import results
from tests.fakes.client import Poster
from tests.fakes.waiting import wait_for

from bench_protocol.catalogue.matrix import Device
from bench_server.answers import leaderboard
from bench_server.db.store import Store
from bench_server.web import response_cache
from bench_server.web.response_cache import ResponseCache

BOARD = "/api/v1/leaderboard"
ATTEMPTS = 8


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Grows by one each time that boards are worked out."""
    calls: list[Any] = []
    rankings = leaderboard.rankings

    def counting(session: Any, workloads: Any, *asked: Any) -> Any:
        calls.append(workloads)
        return rankings(session, workloads, *asked)

    monkeypatch.setattr(leaderboard, "rankings", counting)
    return calls


def test_a_cached_comparison_names_the_host_of_its_own_request(http: TestClient) -> None:
    """The Host of one client must not decide what others get."""
    post = Poster(http)
    post.enroll()
    post.made()
    gpu = results.make_machine("AMD EPYC 9654 96-Core Processor", ("cuda", "NVIDIA H200", None))
    post.made(cell=results.make_cell(device=Device(kind="cuda")), machine=gpu)
    rows = http.get("/api/v1/leaderboard?workload=mnist-cnn").json()["rows"]
    address = "/compare?ids=" + ",".join(row["hardware_slug"] for row in rows)
    pages = [http.get(address, headers={"Host": host}).text for host in ("a.example", "b.example")]
    assert "a.example" in pages[0]
    assert "a.example" not in pages[1]
    assert pages[1] == pages[0].replace("a.example", "b.example")


def test_a_board_is_worked_out_once_while_the_log_is_the_same(
    http: TestClient, worked_out: list[Any]
) -> None:
    first = http.get(BOARD, params={"workload": "mnist-cnn"})
    again = http.get(BOARD, params={"workload": "mnist-cnn"})
    assert len(worked_out) == 1
    assert (again.content, again.headers) == (first.content, first.headers)
    http.get(BOARD, params={"workload": "fashion-cnn"})
    assert len(worked_out) == 2


def test_a_quiet_server_has_a_result_on_its_board_within_half_a_second(
    live_server: str, store: Store
) -> None:
    """The median of several, because other programs may keep the processor at times."""
    with httpx.Client(base_url=live_server) as http:
        post = Poster(http, store)
        post.enroll()
        seconds = []
        for count in range(1, ATTEMPTS + 1):
            result = post.bound(results.make_result())
            post(result)
            began = time.perf_counter()

            def is_shown(count: int = count) -> bool:
                rows = http.get(BOARD, params={"workload": "mnist-cnn"}).json()["rows"]
                return [row["runs"] for row in rows] == [count]

            assert wait_for(is_shown)
            seconds.append(time.perf_counter() - began)
    print(f"on the board after {', '.join(f'{one:.2f}' for one in sorted(seconds))} s")
    assert median(seconds) < 0.5


def test_answers_say_which_entries_they_follow_from(http: TestClient, post: Poster) -> None:
    """The header on each, a member of what is ranked, and a line on each page."""
    for entries in (1, 2):
        if entries == 2:
            post.made()
        for address in ("/", BOARD, "/frameworks", "/api/v1/results", "/api/v1/log"):
            answer = http.get(address)
            assert answer.headers["trainmark-as-of"] == str(entries), address
        assert http.get(BOARD).json()["as_of"] == entries
        assert f"As of log entry {entries}." in http.get("/").text
    assert "trainmark-as-of" not in http.get("/healthz").headers


class CountedApp:
    """An application that counts its calls, behind a cache with a clock of its own."""

    def __init__(self) -> None:
        self.now, self.calls, self.position = 0.0, 0, 0
        self._cache = ResponseCache(self._answer, clock=lambda: self.now)
        self._owner = SimpleNamespace(state=SimpleNamespace(cached={}))

    async def _answer(self, scope: Any, receive: Any, send: Callable[[Message], Any]) -> None:
        self.calls += 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    def get(self, query: bytes = b"") -> int:
        """Ask; returns the entries that the answer names."""

        async def send(message: Message) -> None: ...

        scope = {
            "type": "http",
            "app": self._owner,
            "method": "GET",
            "scheme": "http",
            "headers": [],
            "path": "/",
            "query_string": query,
            "state": {"as_of": self.position},
        }
        # In a thread: Playwright's loop runs in this one where pages were tested before.
        with ThreadPoolExecutor(1) as thread:
            answered = self._cache(scope, lambda: None, send)  # type: ignore[arg-type, return-value]
            thread.submit(asyncio.run, answered).result()
        as_of: int = scope["state"]["as_of"]  # type: ignore[index]
        return as_of


def test_an_answer_does_not_outlast_its_time() -> None:
    app = CountedApp()
    app.get()
    app.now = response_cache.CACHED_SECONDS - 0.1
    app.get()
    assert app.calls == 1
    app.now += 0.2
    app.get()
    assert app.calls == 2
    for number in range(response_cache.CACHED_ANSWERS):
        app.get(b"%d" % number)
    app.get()
    assert app.calls == 2 + response_cache.CACHED_ANSWERS + 1


def test_a_fresh_answer_is_sent_again_and_names_its_own_entries() -> None:
    app = CountedApp()
    assert app.get() == 0
    app.position, app.now = 5, response_cache.FRESH_SECONDS / 2
    assert (app.get(), app.calls) == (0, 1)
    app.now = response_cache.FRESH_SECONDS + 0.01
    assert (app.get(), app.calls) == (5, 2)
