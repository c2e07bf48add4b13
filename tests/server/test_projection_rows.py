"""The rows of the projection are the same, however they come about."""

import contextlib
from datetime import timedelta
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fakes import results, said, trusted
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster
from tests.fakes.projected import project, rows

from bench_protocol.base.errors import ProtocolError
from bench_protocol.payload import acts
from bench_protocol.payload.result import Warn
from bench_server.db.store import Store
from bench_server.db.tables import Table
from bench_server.ingest import moderation
from bench_server.log import writer
from bench_server.projection import reindex
from bench_server.projection.projector import Projector

KEYS = [results.private_key(seed) for seed in range(1, 5)]
IDS = [results.key_id(key) for key in KEYS]
LOAD = (Warn(code="other_load", figures={"busy_cores": 2.0, "cores": 12.0}),)


keys = st.integers(0, len(KEYS) - 1)
owners = st.sampled_from(["lab", *(acts.first_owner(key_id) for key_id in IDS)])
results_so_far = st.integers(0, 30)
events = st.lists(
    st.one_of(
        st.tuples(
            st.just("result"), keys, st.sampled_from([900_000, 1_000_000, 1_010_000]), st.booleans()
        ),
        st.tuples(
            st.just("trusted"),
            keys,
            st.sampled_from([10_000_000, 10_100_000, 30_000_000]),
            st.sampled_from([0, 29, 30]),
        ),
        st.tuples(st.just("failure"), keys),
        st.tuples(st.sampled_from(["hide", "show", "withdraw"]), results_so_far),
        st.tuples(st.sampled_from(["flag", "quarantine", "restore"]), results_so_far),
        st.tuples(st.sampled_from(["confirm", "doubt"]), owners),
        st.tuples(st.just("assign"), keys, owners),
        st.tuples(st.just("locate"), owners, st.sampled_from([None, 1, 2])),
        st.tuples(st.just("revoke"), keys, st.none() | st.integers(0, 30)),
        st.tuples(st.just("project"), st.integers(1, 7)),
    ),
    min_size=5,
    max_size=30,
)


class History:
    def __init__(self, post: Poster, store: Store) -> None:
        self.post, self.store = post, store
        self.made: list[tuple[int, str]] = []

    def happen(self, kind: str, *about: Any) -> None:
        if kind == "project":
            Projector(self.store, batch=about[0]).step()
        elif kind in ("result", "failure"):
            self._post(about[0], *about[1:])
        elif kind == "trusted":
            self._trusted(*about)
        elif kind == "revoke":
            said.revoked(self.post, about[0] + 1, about[0] + 1, since=about[1])
        elif kind in ("confirm", "doubt"):
            self._decide(kind, owner=about[0])
        elif kind == "locate":
            self._decide(kind, owner=about[0], area=about[1])
        elif kind == "assign":
            self._decide(kind, key=IDS[about[0]], owner=about[1])
        elif self.made:
            seed, identity = self.made[about[0] % len(self.made)]
            if kind in acts.OWN_ACTS:
                said.act(self.post, kind, seed=seed, result=identity)
            else:
                self._decide(kind, result=identity, reason="a reason")

    def _post(self, key: int, step_ns: int | None = None, disturbed: bool = False) -> None:
        made = {"key": KEYS[key], "machine": results.make_machine(seed=key + 1)}
        result = (
            results.make_failure(**made)
            if step_ns is None
            else self.post.bound(
                results.make_result(
                    step_ns=step_ns + key, warnings=LOAD if disturbed else (), **made
                )
            )
        )
        answer = self.post.raw(results.sealed(result, KEYS[key]))
        if answer.status_code == 201:
            self.made.append((key + 1, answer.json()["id"]))

    def _trusted(self, key: int, step_ns: int, day: int) -> None:
        began = trusted.BEGAN + timedelta(days=day)
        try:
            steps = [step_ns, step_ns + 1_000]
            ids = trusted.send(self.store, KEYS[key], steps, began=began, projected=False)
        except ProtocolError:  # a revoked key gets no challenge
            return
        self.made += [(key + 1, identity) for identity in ids]

    def _decide(self, kind: Any, **about: Any) -> None:
        # An impossible act is refused.
        with contextlib.suppress(ProtocolError):
            moderation.decide(self.store, AUTHORITY, said.NOW, kind, **about)


@settings(
    max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(history=events, batch=st.integers(1, 9), vouched=st.booleans())
def test_a_reindex_gives_the_rows_of_the_incremental_projection(
    app: FastAPI, store: Store, history: list[tuple[Any, ...]], batch: int, vouched: bool
) -> None:
    """Whatever happened, in whatever batches it was applied: equal to the last digit."""
    with store.writing() as session:
        for table in reversed(Table.metadata.sorted_tables):
            session.execute(table.delete())
    with store.writing() as session:
        writer.begin(session, AUTHORITY)
    app.state.kept = {}
    post = Poster(TestClient(app))
    for key in KEYS:
        post.enroll(key)
    happening = History(post, store)
    if vouched:  # level 4 takes three confirmed owners of one set-up
        for number, key_id in enumerate(IDS):
            happening.happen("confirm", acts.first_owner(key_id))
            happening.happen("trusted", number, 10_000_000 + 300_000 * number, 0)
    for event in history:
        happening.happen(*event)
    project(store)
    before = rows(store)
    reindex.clear(store)
    Projector(store, batch=batch).catch_up()
    assert rows(store) == before
    reindex.reindex(store)
    assert rows(store) == before
