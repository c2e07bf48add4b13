"""Owners by cost: who is established, and that a crowd of new owners moves nothing."""

import re
from datetime import timedelta

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select
from tests.fakes import results, said, trusted
from tests.fakes.client import Poster
from tests.fakes.crowds import bounds, crowd
from tests.fakes.projected import project, settle
from tests.fakes.statements import statements
from tests.server.test_plans import plan
from tests.server.test_ranks import decide

from bench_protocol.payload import acts
from bench_server.db.store import Store
from bench_server.db.tables import Owner
from bench_server.projection import reindex
from bench_server.ranking.owners import ESTABLISHED_AFTER, establish

OLD, OTHER = results.private_key(1), results.private_key(2)
STEP_NS = 10_000_000
LATER = trusted.BEGAN + ESTABLISHED_AFTER


def label(seed: int = 1) -> str:
    return acts.first_owner(results.key_id(results.private_key(seed)))


def established(store: Store) -> list[str]:
    project(store)
    with store.reading() as session:
        query = select(Owner.label).where(Owner.established)  # type: ignore[call-overload]
        return sorted(session.scalars(query))


def test_thirty_days_between_recomputed_results_establish_an_owner(
    post: Poster, store: Store
) -> None:
    second = timedelta(seconds=1)
    (first,) = trusted.send(store, OLD, [STEP_NS])
    trusted.send(store, OLD, [STEP_NS], began=LATER - second)
    assert established(store) == []
    # Accepted, but its readings are not recomputed yet.
    (last,) = trusted.send(store, OLD, [STEP_NS], began=LATER, projected=False)
    assert established(store) == []
    settle(store)
    assert established(store) == [label()]
    reindex.reindex(store)
    assert established(store) == [label()]
    # It follows from the present results.
    decide(store, "flag", result=last, reason="a reason")
    assert established(store) == []
    decide(store, "restore", result=last)
    assert established(store) == [label()]
    assert said.act(post, "withdraw", result=first).status_code == 200
    assert established(store) == []


def test_an_owner_is_established_whoever_its_keys_were(post: Poster, store: Store) -> None:
    post.enroll(OTHER)
    trusted.send(store, OLD, [STEP_NS])
    trusted.send(store, OTHER, [STEP_NS], began=LATER)
    assert established(store) == []
    for key in (OLD, OTHER):
        decide(store, "assign", key=results.key_id(key), owner="lab")
    assert established(store) == ["lab"]
    decide(store, "assign", key=results.key_id(OTHER), owner=label(2))
    assert established(store) == []


def board(post: Poster) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = post.http.get("/api/v1/leaderboard?workload=mnist-cnn").json()[
        "rows"
    ]
    return rows


@pytest.mark.parametrize(
    ("kind", "many"),
    [("established", 12), pytest.param("confirmed", 100, marks=pytest.mark.long)],
)
def test_many_new_owners_move_no_place_median_or_bound(
    app: FastAPI, post: Poster, store: Store, kind: str, many: int
) -> None:
    trusted.send(store, OLD, [STEP_NS])
    if kind == "established":
        trusted.send(store, OLD, [STEP_NS], began=LATER)
    else:
        decide(store, "confirm", owner=label())
    (before,), bound = board(post), bounds(store)
    assert bound[0].owners == 1
    app.state.clock = lambda: LATER
    with TestClient(post.http.app, client=("192.0.2.1", 1)) as network:  # type: ignore[attr-defined]
        crowd(network, store, range(100, 100 + many), STEP_NS // 2, LATER)
    lone, tuned, first = board(post)
    counts = ("owners", "new_owners")
    assert [first[name] for name in counts] == [many + 1, many]
    same = ("rank", "result_id", "samples_per_second", "backing", "repeats", "trust_level")
    assert [first[name] for name in same] == [before[name] for name in same]
    assert (first["backing"], first["owners_that_decide"]) == ("one", "established")
    held = {
        (row["hardware_slug"], row["recipe"], row["rank"], row["held"]) for row in (lone, tuned)
    }
    assert held == {
        ("intel-core-i3-8100", "naive", None, True),
        ("intel-core-i7-8700", "tuned", None, True),
    }
    assert bounds(store) == bound
    words = f"1 {kind}, {many} new; only the 1 {kind} counts"
    for address in ("/?workload=mnist-cnn", "/hardware/intel-core-i7-8700"):
        assert words in post.http.get(address).text
    for address in ("/?workload=mnist-cnn", "/hardware/intel-core-i7-8700"):
        assert f"1 of {many + 1} owners counts" in post.http.get(address).text
    reindex.reindex(store)
    assert board(post) == [lone, tuned, first]


def test_what_establishes_an_owner_is_read_from_an_index(store: Store) -> None:
    """Each new result asks for it. PostgreSQL reads an empty table without an index."""
    with statements(store) as seen, store.reading() as session:
        establish(session.connection(), ["a"])
    ((statement, parameters),) = [one for one in seen if "trust_level >= 3" in one[0]]
    if store.engine.dialect.name == "sqlite":
        with store.engine.connect() as connection:
            found = plan(connection, statement, parameters)
            # Without statistics both are alike to SQLite, which takes the one it made last.
            assert len(re.findall("INDEX ix_measurement_(trusted|owner)", found)) == 2
