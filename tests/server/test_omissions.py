"""What a sender leaves out beside a result: challenges, withdrawn and hidden results, repeats."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from fastapi import FastAPI
from tests.fakes import results, said
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import JSON, Poster, get
from tests.fakes.projected import project
from tests.fakes.statements import statements

from bench_server.db.store import Store
from bench_server.ingest import challenges, moderation

ALL_THERE = {"challenges": 0, "renewals": 0, "withdrawn": 0, "missing_repeats": []}
MINUTE = timedelta(minutes=1)


class Sender:
    def __init__(self, post: Poster, app: FastAPI, seed: int = 1) -> None:
        self.post, self._app, self.key = post, app, results.private_key(seed)
        self.now = datetime(2026, 11, 21, 4, tzinfo=UTC)
        app.state.clock = lambda: self.now
        post.enroll(self.key)

    def ask(self, run: int) -> None:
        self.now += MINUTE
        assert self.post.ask(self.key, f"{run:032x}").status_code == 201

    def ask_with(self, body: bytes) -> Any:
        return self.post.http.post("/api/v1/challenges", content=body, headers=JSON)

    def send(self, run: int, repeat: int = 1) -> str:
        self.now += MINUTE
        return self.post.made(
            key=self.key, run_id=f"{run:032x}", repeat=repeat, step_ns=1_000_000 + run + repeat
        )


@pytest.fixture
def sender(post: Poster, application: FastAPI) -> Sender:
    return Sender(post, application)


def shown(sender: Sender, result: str) -> tuple[dict[str, Any], dict[str, Any]]:
    answer = get(sender.post.http, f"/results/{result}")
    (row,) = get(
        sender.post.http, f"/leaderboard?workload=mnist-cnn&limit={sender.now.minute + 1}"
    )["rows"]
    assert row["result_id"] == result
    assert row["omissions"] == answer["omissions"]
    return answer["omissions"], next(s for s in answer["shows"] if s["what"] == "selection")


def test_an_honest_run_leaves_nothing_out(sender: Sender) -> None:
    """Its challenge is renewed; the next run has just begun."""
    sender.send(1)
    sender.send(1, repeat=2)
    sender.ask(2)
    last = sender.send(3)
    sender.ask(4)
    found, statement = shown(sender, get(sender.post.http, "/results")["results"][0]["id"])
    assert found == ALL_THERE | {"challenges": 1}
    assert statement["status"] == "not_checked"
    assert "interrupted runs included" in statement["sentence"]
    sender.now += timedelta(days=40)
    alone = sender.send(5)
    answer = get(sender.post.http, f"/results/{alone}")
    assert answer["omissions"] == ALL_THERE
    assert last != alone
    assert [s["status"] for s in answer["shows"] if s["what"] == "selection"] == ["holds"]


def test_the_best_of_ten_runs_shows_the_other_nine(sender: Sender) -> None:
    for run in range(1, 10):
        sender.ask(run)
    best = sender.send(10)
    found, statement = shown(sender, best)
    assert found == ALL_THERE | {"challenges": 9}
    assert statement["sentence"].startswith("9 challenges of its key without a result")
    page = re.sub(r"\s+", " ", sender.post.http.get("/?workload=mnist-cnn").text)
    assert "9 challenges of its key without a result, interrupted runs included</span>" in page


def test_a_renewed_challenge_is_of_its_run(sender: Sender) -> None:
    sender.ask(1)
    sender.ask(1)
    found, statement = shown(sender, sender.send(1))
    assert found == ALL_THERE | {"renewals": 2}
    assert statement["sentence"] == "2 challenges of its run without a result"


@pytest.mark.parametrize(
    ("acts", "counted"),
    [
        ("withdraw", 3),
        ("hide", 3),
        ("hide hide", 3),
        ("hide show", 0),
        ("show", 0),
        ("hide show withdraw", 3),
        ("hide withdraw", 3),
        ("WITHDRAW", 0),
        ("hide WITHDRAW", 3),
        ("hide FLAG withdraw", 3),
        ("hide FLAG RESTORE hide", 3),
    ],
)
def test_what_its_sender_took_back_is_counted(
    sender: Sender, store: Store, acts: str, counted: int
) -> None:
    """Capitals are acts of the operator."""
    kept, *others = [sender.send(run) for run in range(1, 5)]
    for other, act in product(others, acts.split()):
        if act.isupper():
            kind: Any = act.lower()
            moderation.decide(store, AUTHORITY, sender.now, kind, result=other, reason="x")
        else:
            assert said.act(sender.post, act, result=other, at=sender.now).status_code == 200
    project(store)
    answer = get(sender.post.http, f"/results/{kept}")
    assert answer["omissions"] == ALL_THERE | {"withdrawn": counted}
    (statement,) = (one for one in answer["shows"] if one["what"] == "selection")
    assert (statement["status"] == "does_not_hold") == (counted > 0)
    assert (statement["sentence"] == "3 results of its key withdrawn or hidden") == (counted > 0)


def test_a_late_result_takes_its_challenges_back(sender: Sender) -> None:
    """The outbox of a run may be sent after the next run has begun."""
    sender.ask(1)
    sender.ask(2)
    sender.ask(1)
    kept = sender.send(3)
    assert get(sender.post.http, f"/results/{kept}")["omissions"] == ALL_THERE | {"challenges": 3}
    late = sender.send(1)
    answer = get(sender.post.http, f"/results/{kept}?wait=0")
    assert answer["omissions"] == ALL_THERE | {"challenges": 1}
    assert get(sender.post.http, f"/results/{late}")["omissions"]["renewals"] == 2


def test_missing_repeats_are_named(sender: Sender) -> None:
    sender.send(1, repeat=9)
    found, statement = shown(sender, sender.send(1, repeat=11))
    assert found == ALL_THERE | {"missing_repeats": [[1, 8], [10, 10]]}
    assert statement["sentence"] == "missing from its run: repeat 1 to 8, 10"


def test_all_boards_ask_once(sender: Sender, store: Store) -> None:
    sender.send(1)
    sender.post.made(key=sender.key, cell=results.make_cell("fashion-mlp"), run_id=f"{2:032x}")
    with statements(store) as seen:
        boards = get(sender.post.http, "/leaderboard")
    assert len({row["workload"] for row in boards["rows"]}) == 2
    assert sum("FROM left_out" in one for one, _ in seen) == 1
    (of_results,) = (one for one, _ in seen if re.search(r"(FROM|JOIN) challenge |\brepeat\b", one))
    assert "LIMIT" in of_results  # no board reads all challenges or repeats of a run, or of a key
    assert "JOIN signing_key" not in of_results  # which PostgreSQL plans as a scan of all keys


def test_nobody_else_takes_a_challenge_of_a_key(sender: Sender, store: Store) -> None:
    """Asking again gives the same one, also at the same time."""
    body = results.challenge_request(sender.key)
    assert sender.ask_with(body).json() == sender.ask_with(body).json()
    with ThreadPoolExecutor(8) as threads:
        for _ in range(5):
            once = results.challenge_request(sender.key), store, AUTHORITY, sender.now, 24.0
            asked = [threads.submit(challenges.give, *once) for _ in range(8)]
            assert len({str(one.result()) for one in asked}) == 1
    unsigned = b'{"key_id":"%s"}' % results.key_id(sender.key).encode()
    assert sender.ask_with(unsigned).status_code == 422
    forged = body.replace(
        results.key_id(sender.key).encode(), results.key_id(results.private_key(2)).encode()
    )
    assert sender.ask_with(forged).json()["code"] == "unknown_key"
    foreign = sender.ask_with(results.challenge_request(sender.key, "other.test"))
    assert (foreign.status_code, foreign.json()["field"]) == (422, "server_origin")
