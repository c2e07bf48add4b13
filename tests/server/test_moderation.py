"""Acts on results and keys: permissions and effects."""

from datetime import timedelta

import pytest
from sqlmodel import Session, select
from tests.fakes import results
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import JSON, Poster, get
from tests.fakes.projected import project
from tests.fakes.said import NOW, act, revoked

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
    rows = get(post.http, "/leaderboard?workload=mnist-cnn")["rows"]
    return [row["samples_per_second"] for row in rows]


def test_only_the_sender_may(post: Poster) -> None:
    identity = post.made()
    post.enroll(results.private_key(2))
    for kind, about, status, said in (
        *(("hide", {"seed": 2}, 403, "not_yours"), ("withdraw", {"seed": 2}, 403, "not_yours")),
        ("flag", {"reason": "x"}, 403, "not_yours"),
        ("hide", {"server_origin": "elsewhere"}, 422, "server_origin"),
        ("hide", {"result": "f" * 16}, 404, "not_found"),
        ("list", {"result": None, "at": NOW - timedelta(hours=1)}, 403, "at"),
    ):
        answer = act(post, kind, **{"result": identity} | about)
        assert answer.status_code == status
        assert said in (answer.json()["code"], answer.json()["field"])


def test_a_replayed_act_does_nothing_again(post: Poster, store: Store) -> None:
    identity = post.made()
    before = rates(post)
    first = act(post, "hide", result=identity)
    assert state(store, identity) == (False, "hidden by its sender")
    assert rates(post) == get(post.http, "/results")["results"] == []
    with store.reading() as session:
        entry = session.exec(select(LogEntry).where(LogEntry.kind == "act")).one()
    act(post, "show", result=identity)
    body = b'{"envelope":%s}' % (entry.envelope or b"")
    assert post.http.post("/api/v1/acts", content=body, headers=JSON).json() == first.json()
    assert state(store, identity)[0]
    assert rates(post) == before


def test_withdrawing_erases_and_leaves_a_stub(post: Poster, store: Store) -> None:
    identity, other = post.made(), post.made()
    act(post, "hide", result=identity)
    size = get(post.http, "/log")["size"]
    assert act(post, "withdraw", result=identity).status_code == 200
    with store.reading() as session:
        assert session.get(Measurement, identity) is None
        assert session.get_one(Withdrawn, identity).workload == "mnist-cnn"
        assert session.exec(select(LogEntry).where(LogEntry.submission_id == identity)).all() == []
        erased = session.exec(select(LogEntry).where(LogEntry.salt == None)).all()  # noqa: E711
    assert [entry.kind for entry in erased] == ["result", "act", "act"]
    assert get(post.http, "/log")["size"] == size + 1
    assert [one["id"] for one in get(post.http, "/results")["results"]] == [other]
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
    address = "/leaderboard?workload=mnist-cnn&include=unranked"
    board = get(post.http, address)
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
    for narrowed in ("batch_size=256", "device=cuda", "trust_level=1"):
        rows = get(post.http, f"{address}&{narrowed}")["unranked"]
        assert gone not in [row["result_id"] for row in rows]
    (row,) = get(post.http, f"{address}&batch_size=128")["unranked"]
    assert row["result_id"] == elsewhere


def test_names_change_and_are_never_signed(post: Poster) -> None:
    identity = post.made()
    for name in ("somebody", None):
        assert act(post, "rename", display_name=name).status_code == 200
        key = get(post.http, f"/results/{identity}")["key_id"]
        assert get(post.http, f"/keys/{key}")["display_name"] == name


def test_a_compromised_key_loses_what_came_after(post: Poster, store: Store) -> None:
    early, late = post.made(), post.made()
    assert revoked(post, 1, 1, since=2).status_code == 201
    assert state(store, early) == (True, None)
    rankable, reason = state(store, late)
    assert not rankable
    assert "revoked (lost)" in str(reason)
    answer = post.raw(results.sealed(results.make_result()))
    assert (answer.status_code, answer.json()["code"]) == (403, "key_not_active")


def test_who_may_revoke(post: Poster, store: Store) -> None:
    for seed in (2, 3):
        key = results.private_key(seed)
        post.enroll(key)
        of_key = {"key": results.key_id(key), "owner": "lab"}
        moderation.decide(store, AUTHORITY, NOW, "assign", **of_key)
    assert revoked(post, 2, 1).json()["code"] == "key_not_active"
    assert [revoked(post, 2, 3).status_code for _ in range(2)] == [201, 200]
    assert revoked(post, 3, 2).json()["code"] == "key_not_active"
