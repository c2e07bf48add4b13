"""Acts on results and keys: permissions and effects."""

from datetime import datetime, timedelta

import pytest
from fastapi import FastAPI
from sqlmodel import Session, select
from tests.fakes import results
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import JSON, Poster
from tests.fakes.projected import project
from tests.fakes.said import NOW, act, revoked

from bench_protocol.payload.result import Challenge
from bench_server.answers import stored_results
from bench_server.db.store import Store
from bench_server.db.tables import LogEntry, Measurement, Submission, Withdrawn
from bench_server.ingest import moderation

PARTS = ("", "/envelope", "/receipt", "/recomputations")


def state(store: Store, identity: str) -> tuple[bool, str | None]:
    project(store)
    with store.reading() as session:
        row = session.get_one(Measurement, identity)
        return row.rankable, row.unranked_reason


def rates(post: Poster) -> list[float]:
    rows = post.http.get("/api/v1/leaderboard?workload=mnist-cnn").json()["rows"]
    return [row["samples_per_second"] for row in rows if not row.get("published")]


def test_hidden_results_do_not_count_and_come_back(post: Poster, store: Store) -> None:
    identity = post.made()
    before = rates(post)
    assert act(post, "hide", result=identity).status_code == 200
    assert state(store, identity) == (False, "hidden by its sender")
    assert rates(post) == []
    assert post.http.get("/api/v1/results").json()["results"] == []
    assert act(post, "show", result=identity).status_code == 200
    assert rates(post) == before


def test_only_the_sender_may(post: Poster) -> None:
    identity = post.made()
    post.enroll(results.private_key(2))
    for kind in ("hide", "withdraw"):
        answer = act(post, kind, seed=2, result=identity)
        assert (answer.status_code, answer.json()["code"]) == (403, "not_yours")
    assert act(post, "flag", result=identity, reason="x").json()["code"] == "not_yours"
    wrong = act(post, "hide", result=identity, server_origin="elsewhere")
    assert (wrong.status_code, wrong.json()["field"]) == (422, "server_origin")
    assert act(post, "hide", result="f" * 16).status_code == 404
    stale = act(post, "list", at=NOW - timedelta(hours=1))
    assert (stale.status_code, stale.json()["field"]) == (403, "at")


def test_a_replayed_act_does_nothing_again(post: Poster, store: Store) -> None:
    identity = post.made()
    first = act(post, "hide", result=identity)
    with store.reading() as session:
        entry = session.exec(select(LogEntry).where(LogEntry.kind == "act")).one()
    act(post, "show", result=identity)
    body = b'{"envelope":%s}' % (entry.envelope or b"")
    again = post.http.post("/api/v1/acts", content=body, headers=JSON)
    assert again.json() == first.json()
    assert state(store, identity)[0]


def test_withdrawing_erases_and_leaves_a_stub(post: Poster, store: Store) -> None:
    identity, other = post.made(), post.made()
    act(post, "hide", result=identity)
    size = post.http.get("/api/v1/log").json()["size"]
    assert act(post, "withdraw", result=identity).status_code == 200
    with store.reading() as session:
        assert session.get(Measurement, identity) is None
        stub = session.get_one(Withdrawn, identity)
        entries = session.exec(select(LogEntry).where(LogEntry.submission_id == identity)).all()
        erased = session.exec(select(LogEntry).where(LogEntry.salt == None)).all()  # noqa: E711
    assert (stub.workload, entries) == ("mnist-cnn", [])
    assert [entry.kind for entry in erased] == ["result", "act", "act"]
    assert post.http.get("/api/v1/log").json()["size"] == size + 1
    assert [r["id"] for r in post.http.get("/api/v1/results").json()["results"]] == [other]
    assert act(post, "withdraw", result=identity).status_code == 410


def test_a_result_is_withdrawn_while_it_is_read(
    post: Poster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All queries of an answer see the same results."""
    found = stored_results.result_with_id

    def then_withdrawn(session: Session, result: str) -> tuple[Submission, Measurement]:
        rows = found(session, result)
        moderation.decide(store, AUTHORITY, NOW, "withdraw", result=result)
        return rows

    for path in ("results/{}", *(f"api/v1/results/{{}}{part}" for part in PARTS)):
        address = path.format(post.made())
        with monkeypatch.context() as patch:
            patch.setattr(stored_results, "result_with_id", then_withdrawn)
            assert post.http.get(address).status_code == 200
        assert post.http.get(address).status_code == 410


def test_what_does_not_count_stays_at_the_foot(post: Poster, store: Store) -> None:
    """Flagged, hidden or withdrawn: marked, with the reason, and never with a rank."""
    other = results.make_cell(batch_size=128)
    ranked, flagged, hidden, gone = (post.made(step_ns=n * 1_000_000) for n in (1, 2, 3, 4))
    elsewhere = post.made(cell=other)
    moderation.decide(store, AUTHORITY, NOW, "flag", result=flagged, reason="overclocked")
    act(post, "hide", result=hidden)
    for identity in (gone, elsewhere):
        act(post, "withdraw", result=identity)
    address = "/api/v1/leaderboard?workload=mnist-cnn&include=unranked"
    board = post.http.get(address).json()
    assert {row["result_id"]: (row["state"], row["reason"]) for row in board["unranked"]} == {
        flagged: ("kept", "flagged by the operator: overclocked"),
        hidden: ("hidden", "hidden by its sender"),
        gone: ("withdrawn", "withdrawn by its sender or the operator"),
    }
    assert [row["result_id"] for row in board["rows"]] == [ranked]
    page = post.http.get("/?workload=mnist-cnn").text
    assert "3 results not ranked" in page
    assert "withdrawn by its sender" in page
    assert f"/results/{flagged}" in page
    assert f"/results/{gone}" not in page
    for narrowed in ("batch_size=256", "device=cuda", "trust_level=1", "where=os=linux"):
        board = post.http.get(f"{address}&{narrowed}").json()
        assert gone not in [row["result_id"] for row in board["unranked"]]
    wide = post.http.get(f"{address}&batch_size=128").json()
    assert [row["result_id"] for row in wide["unranked"]] == [elsewhere]


def test_names_change_and_are_never_signed(post: Poster) -> None:
    identity = post.made()
    for name in ("somebody", None):
        assert act(post, "rename", display_name=name).status_code == 200
        key = post.http.get(f"/api/v1/results/{identity}").json()["key_id"]
        assert post.http.get(f"/api/v1/keys/{key}").json()["display_name"] == name


def test_a_compromised_key_loses_what_came_after(post: Poster, store: Store) -> None:
    early, late = post.made(), post.made()
    assert revoked(post, 1, 1, since=2).status_code == 201
    assert state(store, early) == (True, None)
    rankable, reason = state(store, late)
    assert not rankable
    assert reason is not None
    assert "revoked (lost)" in reason
    answer = post.raw(results.sealed(results.make_result()))
    assert (answer.status_code, answer.json()["code"]) == (403, "key_not_active")


def test_who_may_revoke(post: Poster, store: Store) -> None:
    for seed in (2, 3):
        post.enroll(results.private_key(seed))
    assert revoked(post, 2, 1).json()["code"] == "key_not_active"
    for seed in (2, 3):
        key = results.key_id(results.private_key(seed))
        moderation.decide(store, AUTHORITY, NOW, "assign", key=key, owner="lab")
    assert revoked(post, 2, 3).status_code == 201
    assert revoked(post, 2, 3).status_code == 200
    assert revoked(post, 3, 2).json()["code"] == "key_not_active"


def test_an_expired_challenge_lowers_the_level(post: Poster, app: FastAPI) -> None:
    challenge = post.ask().json()
    named = Challenge(**{name: challenge[name] for name in Challenge.model_fields})
    app.state.clock = lambda: datetime.fromisoformat(challenge["expires_at"]) + timedelta(seconds=1)
    identity = post.made(challenge=named)
    answer = post.http.get(f"/api/v1/results/{identity}").json()
    verdict = {v["check"]: v for v in answer["verdicts"]}["challenge"]
    assert (answer["trust_level"], verdict["passed"]) == (1, False)
    assert "expired" in verdict["sentence"]
