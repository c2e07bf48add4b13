"""Trust level 4: most confirmed owners agree on a result; number of statements, and replay."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import event, select
from tests.fakes import results, said, trusted
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster
from tests.fakes.projected import project

from bench_protocol import acts
from bench_server.db.store import Store
from bench_server.db.tables import Aggregate, Measurement
from bench_server.ingest import moderation
from bench_server.projection import reindex, reproduced

KEYS = [results.private_key(seed) for seed in (1, 2)]
OWNERS = [acts.first_owner(results.key_id(key)) for key in KEYS]
STEP_NS = 10_000_000
MANY = 60


@pytest.fixture
def confirmed(post: Poster, store: Store) -> None:
    """Two confirmed owners with a key each."""
    post.enroll(KEYS[1])
    for owner in OWNERS:
        decide(store, "confirm", owner=owner)


@pytest.mark.parametrize(("owners", "honest"), [(2, 0.4), (5, 0.6), (20, 0.6)])
def test_a_result_far_from_most_owners_is_not_reproduced(owners: int, honest: float) -> None:
    """Owners' medians spread by 10 %. With any two owners of 20 within 10 % of it, a result two
    deviations fast was reproduced in 76 % of cases; an honest one still is, mostly."""
    noise, cases = random.Random(3), 2_000
    far = middle = 0
    for _ in range(cases):
        medians = [100 * noise.gauss(1, 0.1) for _ in range(owners)]
        far += reproduced.reproduced(80, medians)
        middle += reproduced.reproduced(100, medians)
    assert far / cases < 0.05
    assert middle / cases > honest


def decide(store: Store, kind: acts.OperatorAct, **about: str) -> None:
    moderation.decide(store, AUTHORITY, said.NOW, kind, **about)
    project(store)


def repeats(count: int) -> list[int]:
    return [STEP_NS + 1_000 * number for number in range(count)]


def levels(store: Store) -> dict[str, list[int]]:
    """Trust levels of all results and all aggregates."""
    with store.reading() as session:
        return {
            table.__tablename__: sorted(session.scalars(select(table.trust_level)))  # type: ignore[call-overload]
            for table in (Measurement, Aggregate)
        }


@contextmanager
def counting(store: Store) -> Iterator[list[str]]:
    """Record the statements that run inside the block."""
    statements: list[str] = []

    def ran(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    event.listen(store.engine, "before_cursor_execute", ran)
    try:
        yield statements
    finally:
        event.remove(store.engine, "before_cursor_execute", ran)


@pytest.mark.usefixtures("confirmed")
def test_a_first_figure_of_a_second_owner_raises_what_was_there(store: Store) -> None:
    trusted.send(store, KEYS[0], repeats(3))
    assert set(levels(store)["measurement"]) == {3}
    trusted.send(store, KEYS[1], repeats(2))
    found = levels(store)
    assert set(found["measurement"]) == set(found["standing"]) == {4}
    reindex.reindex(store)
    assert levels(store) == found


@pytest.mark.usefixtures("confirmed")
def test_what_is_no_longer_reproduced_is_lowered(store: Store, post: Poster) -> None:
    trusted.send(store, KEYS[0], repeats(3))
    (only,) = trusted.send(store, KEYS[1], repeats(1))
    assert set(levels(store)["measurement"]) == {4}
    assert said.act(post, "withdraw", seed=2, result=only).status_code == 200
    found = levels(store)
    assert found["measurement"] == [3, 3, 3]
    reindex.reindex(store)
    assert levels(store) == found


@pytest.mark.usefixtures("confirmed")
@pytest.mark.parametrize("operation", ["confirm", "doubt", "assign", "revoke"])
def test_a_decision_reads_a_setup_once(store: Store, post: Poster, operation: str) -> None:
    """Fewer statements than results, so none runs for each result."""
    trusted.send(store, KEYS[1], repeats(2))
    trusted.send(store, KEYS[0], repeats(MANY))
    if operation == "confirm":
        decide(store, "doubt", owner=OWNERS[0])
    with counting(store) as statements:
        if operation == "revoke":
            assert said.revoked(post, 1, 1, since=0).status_code == 201
        elif operation == "assign":
            decide(store, "assign", key=results.key_id(KEYS[0]), owner="lab")
        else:
            decide(store, operation, owner=OWNERS[0])  # type: ignore[arg-type]
    assert len(statements) < MANY
    expected = [4] * (MANY + 2) if operation == "confirm" else [3] * (MANY + 2)
    assert levels(store)["measurement"] == expected


@pytest.mark.usefixtures("confirmed")
def test_results_of_a_group_read_their_setup_once(store: Store) -> None:
    for key in KEYS:
        trusted.send(store, key, repeats(3))
    counts = []
    for count in (1, 4):
        with counting(store) as statements:
            trusted.send(store, KEYS[0], repeats(count))
        counts.append(len(statements))
    assert counts[0] == counts[1]
