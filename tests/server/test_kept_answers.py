"""Kept answers: sent while the next is made, made once for all, at most a second old, and few."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send
from tests.fakes import results
from tests.fakes.client import Poster
from tests.fakes.waiting import wait_for

from bench_protocol.base import format as people
from bench_protocol.catalogue.matrix import Device
from bench_server.answers import leaderboard
from bench_server.db.store import Store
from bench_server.projection.position import Position
from bench_server.web import kept_answers
from bench_server.web.kept_answers import (
    ASKED_SECONDS,
    LARGEST_BYTES,
    LONGEST_SECONDS,
    MOST_ANSWERS,
    POLL_SECONDS,
    REMADE_SECONDS,
    REST,
    STALE_SECONDS,
    KeptAnswers,
)

BOARD = "/api/v1/leaderboard"


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    calls: list[Any] = []
    rankings = leaderboard.rankings

    def counting(session: Any, workloads: Any, *asked: Any) -> Any:
        calls.append(workloads)
        return rankings(session, workloads, *asked)

    monkeypatch.setattr(leaderboard, "rankings", counting)
    return calls


def test_a_kept_comparison_names_the_host_of_its_own_request(http: TestClient) -> None:
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


def test_a_refusal_is_in_the_form_that_each_reader_accepts(http: TestClient) -> None:
    for _ in range(2):
        page = http.get("/?workload=none", headers={"Accept": "text/html"})
        problem = http.get("/?workload=none", headers={"Accept": "application/json"})
        assert (page.status_code, problem.status_code) == (422, 422)
        assert page.headers["content-type"].startswith("text/html")
        assert problem.json()["field"] == "workload"


def test_answers_say_which_entries_they_follow_from(http: TestClient, post: Poster) -> None:
    """The header on each, a member of what is ranked, and a line on one page: the log's."""
    for entries in (1, 2):
        if entries == 2:
            post.made()
        for address in ("/", BOARD, "/frameworks", "/api/v1/results", "/api/v1/log"):
            assert http.get(address).headers["trainmark-as-of"] == str(entries), address
        assert http.get(BOARD).json()["as_of"] == entries
        first = f"The pages show its first {people.plural(entries, 'entry', 'entries')}."
        assert first in http.get("/log").text
        assert "log entr" not in http.get("/").text
    assert "trainmark-as-of" not in http.get("/healthz").headers


def test_a_real_server_shows_a_sender_its_result_at_once(live_server: str, store: Store) -> None:
    """Its result's page when the server has accepted it; each board, once the result is projected,
    at once where the reader asks for the present one, and soon in any case."""
    with httpx.Client(base_url=live_server) as http:
        post = Poster(http, store)
        post.enroll()
        for count in (1, 2, 3):
            asked = {"workload": "mnist-cnn", "limit": 7 + count // 3}
            http.get(BOARD, params=asked)
            identity = post(post.bound(results.make_result()))
            assert http.get(f"/results/{identity}").status_code == 200
            told = http.get(f"/api/v1/results/{identity}?wait=30")
            assert told.json()["status"] == "measured"
            present = http.get(BOARD, params=asked, headers={"Cache-Control": "no-cache"})
            assert [row["runs"] for row in present.json()["rows"]] == [count]
            assert present.json()["as_of"] >= int(told.headers["trainmark-as-of"])

            def is_shown(count: int = count) -> bool:
                rows = http.get(BOARD, params={"workload": "mnist-cnn"}).json()["rows"]
                return [row["runs"] for row in rows] == [count]

            assert wait_for(is_shown)


class Site:
    """An application behind kept answers. ``calls``: answered queries; ``gate`` holds them."""

    def __init__(self) -> None:
        self.now, self.position, self.took = 100.0, 1, 0.0
        self.calls: list[bytes] = []
        self.requests: list[Scope] = []
        self.body, self.status = b"x", 200
        self.gate: asyncio.Event | None = None
        self.kept: dict[Any, Any] = {}
        self.app = SimpleNamespace(state=SimpleNamespace(kept=self.kept, store=self))
        self.answers = KeptAnswers(self._answer, STALE_SECONDS, clock=lambda: self.now)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.calls.append(scope["query_string"])
        self.requests.append(scope)
        scope["state"]["as_of"] = self.position
        if self.gate is not None:
            await self.gate.wait()
        self.now += self.took
        name = b"%d" % scope["state"]["as_of"]
        await send({"type": "http.response.start", "status": self.status, "headers": [(name, b"")]})
        await send({"type": "http.response.body", "body": self.body})

    async def get(self, query: bytes = b"", *more: tuple[bytes, bytes]) -> int:
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        headers = [(b"host", b"a.example"), *more]
        scope = {"type": "http", "app": self.app, "method": "GET", "scheme": "http"}
        scope |= {"headers": headers, "path": "/", "query_string": query, "state": {}}
        await self.answers(scope, asyncio.Queue[Message]().get, send)
        return int(sent[0]["headers"][0][0])

    async def present(self, query: bytes = b"") -> int:
        return await self.get(query, (b"cache-control", b"no-cache"))

    async def remake(self) -> float | None:
        return await self.answers.remake(self.app)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    made = Site()

    async def follow(app: Any) -> None:
        """The tests say when an answer is made again."""

    monkeypatch.setattr(made.answers, "_follow", follow)
    monkeypatch.setattr(kept_answers, "projected", lambda _: Position(made.position, None))
    return made


def run(coroutine: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """In a thread: Playwright's loop runs in this one where pages were tested before."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(coroutine())).result()


def test_nobody_waits_while_the_next_answer_is_made(site: Site) -> None:
    async def reads() -> None:
        assert await site.get() == 1
        site.position, site.gate = 2, asyncio.Event()
        site.now += REMADE_SECONDS
        making = asyncio.create_task(site.remake())
        while len(site.calls) < 2:
            await asyncio.sleep(0)
        assert [await site.get() for _ in range(3)] == [1, 1, 1]
        site.gate.set()
        await making
        assert (await site.get(), len(site.calls)) == (2, 2)

    run(reads)


def test_nobody_gets_an_answer_that_was_current_more_than_a_second_ago(site: Site) -> None:
    async def reads() -> None:
        await site.get()
        site.now += 5
        assert await site.remake() == POLL_SECONDS
        assert len(site.calls) == 1
        site.position = 2
        site.now += STALE_SECONDS - 0.01
        assert (await site.get(), len(site.calls)) == (1, 1)
        site.now += 0.02
        assert (await site.get(), len(site.calls)) == (2, 2)
        site.now += 5
        assert (await site.get(), len(site.calls)) == (2, 2)

    run(reads)


def test_an_answer_is_made_once_for_all_who_ask(site: Site) -> None:
    async def reads() -> None:
        for position in (1, 2):
            site.position, site.gate = position, asyncio.Event()
            site.now += 2 * STALE_SECONDS
            readers = [asyncio.create_task(site.get()) for _ in range(20)]
            while len(site.calls) < position:
                await asyncio.sleep(0)
            readers[0].cancel()  # whoever asked first may go
            site.gate.set()
            assert await asyncio.gather(*readers[1:]) == [position] * 19
            assert len(site.calls) == position

    run(reads)


def test_a_reader_can_ask_for_the_present_answer(site: Site) -> None:
    async def reads() -> None:
        await site.get()
        site.position, site.gate = 2, asyncio.Event()
        site.now += 0.1
        first = asyncio.create_task(site.present())
        while len(site.calls) < 2:
            await asyncio.sleep(0)
        # This one is sent after the other was begun: what others wait for is too old for it.
        site.position = 3
        site.now += 0.1
        second = asyncio.create_task(site.present())
        await asyncio.sleep(0)
        site.gate.set()
        assert (await first, await second) == (2, 3)
        assert await site.present() == 3
        assert len(site.calls) == 3

    run(reads)


def test_a_busy_log_makes_no_answer_again_at_once(site: Site) -> None:
    async def reads() -> None:
        await site.get()
        for _ in range(100):
            site.position += 1
            site.now += 0.01
            await site.get()
            await site.remake()
        assert len(site.calls) <= 1 + 1 / REMADE_SECONDS

    run(reads)


def test_operators_changes_show_without_a_log_entry(site: Site) -> None:
    async def reads() -> None:
        await site.get()
        site.now += LONGEST_SECONDS - 0.1
        await site.get()
        assert len(site.calls) == 1
        site.now += 0.2
        await site.remake()
        assert len(site.calls) == 2

    run(reads)


def test_the_last_asked_for_come_first_and_the_forgotten_rest(site: Site) -> None:
    async def reads() -> None:
        for query in (b"a", b"b", b"c"):
            await site.get(query)
        site.now += STALE_SECONDS + 0.1
        await site.get(b"a")
        site.position, site.took = 2, 0.5
        site.now += REMADE_SECONDS
        assert await site.remake() == 0  # asked for just now
        assert await site.remake() == pytest.approx(REST * site.took)
        assert site.calls[3:] == [b"a", b"c"]
        site.now += ASKED_SECONDS
        site.position = 3
        assert await site.remake() is None
        assert len(site.calls) == 5

    run(reads)


def test_few_answers_are_kept_and_no_large_one(site: Site) -> None:
    async def reads() -> None:
        for number in range(2 * MOST_ANSWERS):
            await site.get(b"%d" % number)
            await site.get(b"popular")
        assert len(site.kept) == MOST_ANSWERS
        assert site.calls.count(b"popular") == 1
        site.body = bytes(LARGEST_BYTES + 1)
        await site.get(b"large")
        await site.get(b"large")
        assert site.calls.count(b"large") == 2
        assert len(site.kept) == MOST_ANSWERS
        assert sum(len(one.body["body"]) for one in site.kept.values()) < 2 * MOST_ANSWERS

    run(reads)


def test_an_answer_has_nothing_of_its_first_reader(site: Site) -> None:
    async def reads() -> None:
        await site.get(b"", (b"authorization", b"Bearer secret"), (b"accept-language", b"de"))
        (request,) = site.requests
        assert request["headers"] == [(b"host", b"a.example")]
        assert request["client"] is None
        assert "secret" not in str(site.kept)

    run(reads)


def test_an_error_is_not_kept(site: Site) -> None:
    async def reads() -> None:
        await site.get()
        site.position, site.status = 2, 503
        site.now += REMADE_SECONDS
        await site.remake()
        assert not site.kept
        assert await site.get() == 2  # each gets an error of its own
        site.status = 200
        assert await site.get() == 2
        assert len(site.kept) == 1

    run(reads)
