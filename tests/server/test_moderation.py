"""Acts on results and keys: permissions and effects."""

import re
from datetime import timedelta
from typing import Any

import pytest
from sqlmodel import Session, select
from tests.fakes import results
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import JSON, Poster, get
from tests.fakes.projected import project
from tests.fakes.said import NOW, act, revoked, rotated

from bench_agent.remote.verify import _fetch_key
from bench_protocol.base.errors import BadSignature
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


def test_a_compromised_key_loses_what_came_after(post: Poster, store: Store) -> None:
    early, late = post.made(), post.made()
    assert revoked(post, 1, 1, since=2).status_code == 201
    assert state(store, early) == (True, None)
    rankable, reason = state(store, late)
    assert not rankable
    assert "revoked (lost)" in str(reason)
    answer = post.raw(results.sealed(results.make_result()))
    assert (answer.status_code, answer.json()["code"]) == (403, "key_not_active")


def test_what_changes_nothing_is_not_logged(post: Poster, store: Store) -> None:
    """An event is answered with the first receipt, an act with none, each time."""
    identity, key = post.made(), results.key_id(results.private_key())
    post.enroll(results.private_key(3))
    steps = (
        (lambda: act(post, "show", result=identity), 0),
        (lambda: act(post, "hide", result=identity), 1),
        (lambda: act(post, "show", result=identity), 1),
        (lambda: rotated(post, 1, 2), 1),
        (lambda: revoked(post, 2, 2, since=9), 1),
        (lambda: revoked(post, 2, 2), 0),
        (lambda: revoked(post, 2, 2, since=12), 0),
        (lambda: revoked(post, 2, 2, since=8), 1),
    )
    for number, (step, entries) in enumerate(steps):
        size, first = get(post.http, "/log")["size"], step()
        assert first.is_success, first.text
        assert get(post.http, "/log")["size"] == size + entries, number
        moderation.decide(store, AUTHORITY, NOW, "assign", key=key, owner=f"lab {number}")
        again, said = step(), first.json()["receipt"]
        assert get(post.http, "/log")["size"] == size + entries + 1, number
        assert (again.status_code, again.json()["receipt"]) == (
            200, said if "key_id" in first.json() else None
        ), number  # fmt: skip
    assert rotated(post, 1, 3).json()["code"] == "key_not_active"
    assert rotated(post, 2, 4).json()["code"] == "key_not_active"


def test_a_key_is_read_in_pages(post: Poster, store: Store) -> None:
    """With the events of the keys that revoked one of its chain, in the order of the log."""
    for seed in (2, 3):
        post.enroll(results.private_key(seed))
    for seed in (1, 2, 3):
        named = results.key_id(results.private_key(seed))
        moderation.decide(store, AUTHORITY, NOW, "assign", key=named, owner="lab")
    assert rotated(post, 2, 4).status_code == 201
    assert [revoked(post, signer, 1, since).status_code for signer, since in ((3, 9), (4, 8))] == [
        201, 201
    ]  # fmt: skip
    assert revoked(post, 4, 3).status_code == 201
    key = results.key_id(results.private_key())
    whole = get(post.http, f"/keys/{key}?limit=200")
    assert [event["receipt"]["log_index"] for event in whole["events"]] == [*range(10)]
    assert whole["next_start"] is None
    asked: list[str] = []

    def read(path: str) -> dict[str, Any]:
        asked.append(path)
        answer = post.http.get(path.replace("limit=200", "limit=4"))
        links = re.findall(r'start=(\d+)>; rel="next"', answer.headers.get("link", ""))
        assert [*map(int, links)] == [n for n in [answer.json()["next_start"]] if n is not None]
        return dict(answer.json())

    assert _fetch_key(f"/api/v1/keys/{key}?limit=200", read) == whole
    assert len(asked) == 3
    with pytest.raises(BadSignature, match="does not end"):
        _fetch_key("", lambda _: whole | {"next_start": 1})
    other = get(post.http, f"/keys/{results.key_id(results.private_key(4))}")
    assert [event["receipt"]["log_index"] for event in other["events"]] == [1, 4, 6]


def test_who_may_revoke(post: Poster, store: Store) -> None:
    for seed in (2, 3):
        key = results.private_key(seed)
        post.enroll(key)
        of_key = {"key": results.key_id(key), "owner": "lab"}
        moderation.decide(store, AUTHORITY, NOW, "assign", **of_key)
    assert revoked(post, 2, 1).json()["code"] == "key_not_active"
    assert [revoked(post, 2, 3).status_code for _ in range(2)] == [201, 200]
    assert revoked(post, 3, 2).json()["code"] == "key_not_active"
