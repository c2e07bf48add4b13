"""Each payload once, whoever asks how often and at the same time; the bytes as received."""

import base64
import json
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlmodel import func, select
from tests.fakes import results
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import JSON, Poster, get
from tests.fakes.projected import project

from bench_protocol.payload import statement
from bench_protocol.signing import envelope
from bench_server.db.store import Store, utc_now
from bench_server.db.tables import Measurement, SigningKey, Submission
from bench_server.ingest.accept import Accepted
from bench_server.ingest.inbox import Inbox, new_id
from bench_server.projection.measurements import machine_id


def counted(store: Store) -> tuple[int, int]:
    project(store)
    with store.reading() as session:
        return (
            session.exec(select(func.count()).select_from(Submission)).one(),
            session.exec(select(func.count()).select_from(Measurement)).one(),
        )


def test_ids_are_their_own_and_those_of_one_time_are_side_by_side() -> None:
    at = datetime(2026, 11, 23, tzinfo=UTC)
    ids = [new_id(at, number) for number in range(2**32 - 1000, 2**32 + 1000)]
    assert len(set(ids)) == len(ids)
    assert {identity[:8] for identity in ids} == {ids[0][:8]}
    assert new_id(at + timedelta(seconds=1), 0) > max(ids)
    # A clock that is far off gives ids too.
    far = [new_id(datetime(year, 2, 3, tzinfo=UTC), 7) for year in (1, 1969, 2106, 9999)]
    assert {len(identity) for identity in (*ids, *far)} == {16}


def posted_at_once(address: str, bodies: Sequence[bytes]) -> list[httpx.Response]:
    with httpx.Client(timeout=30) as http, ThreadPoolExecutor(12) as pool:
        return list(pool.map(lambda body: http.post(address, content=body, headers=JSON), bodies))


def test_concurrent_posts_are_one_row(live_server: str, store: Store) -> None:
    """Of other payloads for the same repeat the first is kept, and named to the others."""
    keys = posted_at_once(f"{live_server}/api/v1/keys", [results.enrollment()] * 8)
    assert sorted(a.status_code for a in keys) == [200] * 7 + [201]
    bodies = [results.sealed(results.make_result(run_id="b" * 32, repeat=n)) for n in range(2, 6)]
    answers = posted_at_once(f"{live_server}/api/v1/results", bodies * 8)
    assert sorted(a.status_code for a in answers) == [200] * 28 + [201] * 4
    assert len({a.json()["id"] for a in answers}) == 4
    for place, answer in enumerate(answers):
        assert answer.json() == answers[place % 4].json()
    unlike = [results.make_result(run_id="b" * 32, step_ns=10**6 + i) for i in range(12)]
    answers = posted_at_once(f"{live_server}/api/v1/results", [*map(results.sealed, unlike)])
    kept, *others = sorted(answers, key=lambda answer: answer.status_code)
    assert [a.status_code for a in (kept, *others)] == [201] + [409] * 11
    assert {a.json()["code"] for a in others} == {"conflict"}
    assert all(kept.json()["id"] in a.json()["detail"] for a in others)
    assert counted(store) == (5, 5)


def test_one_payload_twice_in_a_batch_is_one_entry(
    post: Poster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it comes, two transactions do."""
    commits, commit = Counter[int](), Inbox._commit

    def counting(inbox: Inbox, opened: Any) -> Any:
        commits[len(opened)] += 1
        return commit(inbox, opened)

    monkeypatch.setattr(Inbox, "_commit", counting)
    raw = results.sealed(results.make_result())
    answers = [
        outcome.result(30) for outcome in Inbox(store, AUTHORITY).accept([raw] * 3, utc_now())
    ]
    accepted = [one for one in answers if isinstance(one, Accepted)]
    assert [one.created for one in accepted] == [True, False, False]
    assert len({(one.id, one.receipt.proof) for one in accepted}) == 1
    assert counted(store) == (1, 1)
    assert commits == {1: 2}


def test_an_id_that_is_taken_is_refused_for_good(
    post: Poster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The id follows from the payload, so no later attempt would have another one."""
    monkeypatch.setattr("bench_server.ingest.inbox.new_id", lambda *_: "0" * 16)
    assert post.made() == "0" * 16
    refused = post.raw(results.sealed(results.make_result()))
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert refused.json()["hint"] == "measure again"


def test_the_envelope_comes_back_in_its_canonical_form(post: Poster, store: Store) -> None:
    result = results.make_result()
    body = results.sealed(result)
    identity = post.raw(json.dumps(json.loads(body), indent=1).encode()).json()["id"]
    answer = post.http.get(f"/api/v1/results/{identity}/envelope")
    assert answer.content == body
    opened = envelope.read(answer.content)
    assert opened.payload == statement.result_payload(result)
    with store.reading() as session:
        assert session.get_one(Submission, identity).payload == opened.payload


def test_enrolling_is_repeatable(post: Poster, store: Store) -> None:
    key = results.private_key(3)
    post.enroll(key)
    post.enroll(key)
    with store.reading() as session:
        row = session.get_one(SigningKey, results.key_id(key))
        assert base64.b64encode(row.spki).startswith(b"MCowBQYDK2VwAyEA")


def test_a_copied_machine_hash_is_another_machine(post: Poster) -> None:
    other = results.private_key(2)
    post.enroll(other)
    mine, theirs = (
        get(post.http, f"/results/{one}") for one in (post.made(), post.made(key=other))
    )
    assert mine["result"]["machine"] == theirs["result"]["machine"]
    assert mine["machine_id"] != theirs["machine_id"]
    assert mine["machine_id"] == machine_id(mine["key_id"], f"{1:064x}")
