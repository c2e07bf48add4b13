"""Trust level 4: other confirmed owners agree on a result; number of statements, and replay."""

import html
import math
from typing import Any

import pytest
from sqlalchemy import select
from tests.fakes import results, said, trusted
from tests.fakes.client import Poster
from tests.fakes.statements import statements
from tests.server.test_ranks import decide

from bench_protocol.payload import acts
from bench_server.db.store import Store
from bench_server.db.tables import Aggregate, Measurement
from bench_server.projection import reindex

KEYS = [results.private_key(seed) for seed in (1, 2, 3)]
OWNERS = [acts.first_owner(results.key_id(key)) for key in KEYS]
STEP_NS = 10_000_000
MANY = 80


@pytest.fixture
def confirmed(post: Poster, store: Store) -> None:
    for key in KEYS[1:]:
        post.enroll(key)
    for owner in OWNERS:
        decide(store, "confirm", owner=owner)


def reproduction(post: Poster, result_id: str) -> Any:
    return post.http.get(f"/api/v1/results/{result_id}").json()["reproduction"]


def repeats(count: int) -> list[int]:
    return [STEP_NS + 1_000 * number for number in range(count)]


def levels(store: Store) -> dict[str, list[int]]:
    with store.reading() as session:
        return {
            table.__tablename__: sorted(session.scalars(select(table.trust_level)))  # type: ignore[call-overload]
            for table in (Measurement, Aggregate)
        }


@pytest.mark.usefixtures("confirmed")
def test_a_first_figure_of_a_third_owner_raises_what_was_there(store: Store, post: Poster) -> None:
    first, *_ = trusted.send(store, KEYS[0], repeats(3))
    assert reproduction(post, first)["owners_needed"] == 2
    trusted.send(store, KEYS[1], repeats(2))
    assert set(levels(store)["measurement"]) == {3}
    undecided = reproduction(post, first)
    assert undecided["sentence"] == (
        "no verdict yet: 1 more confirmed owner must measure this set-up on this hardware"
    )
    page = post.http.get(f"/results/{first}").text
    assert "Reproduction: needs 1 more owner</h2>" in page
    assert "No verdict yet: 1 more confirmed owner must measure" in page
    trusted.send(store, KEYS[2], repeats(1))
    found = levels(store)
    assert set(found["measurement"]) == set(found["aggregate"]) == {4}
    told = reproduction(post, first)
    assert (told["verdict"], told["owners"], told["owners_needed"]) == ("reproduced", 2, 0)
    page = html.unescape(post.http.get(f"/results/{first}").text)
    assert "Reproduction: reproduced" in page
    assert f"{100 * told['tau']:.1f} %" in page
    reindex.reindex(store)
    assert levels(store) == found
    assert reproduction(post, first) == told


@pytest.mark.usefixtures("confirmed")
def test_a_claim_is_not_among_the_others(store: Store, post: Poster) -> None:
    """An owner with many results 20 % too fast is compared with the two others alone."""
    for key in KEYS[:2]:
        trusted.send(store, key, repeats(1))
    fast, *_ = trusted.send(store, KEYS[2], [STEP_NS * 100 // 120] * 5)
    found = reproduction(post, fast)
    assert found["owners"] == 2
    assert found["difference"] == pytest.approx(-math.log(1.2), abs=1e-3)
    assert 4 not in levels(store)["measurement"]


def test_a_result_of_level_2_has_no_reproduction(post: Poster) -> None:
    assert reproduction(post, post.made()) is None


@pytest.mark.usefixtures("confirmed")
def test_what_is_no_longer_reproduced_is_lowered(store: Store, post: Poster) -> None:
    for key in KEYS[1:]:
        trusted.send(store, key, repeats(1))
    (only,) = trusted.send(store, KEYS[0], repeats(1))
    assert set(levels(store)["measurement"]) == {4}
    assert said.act(post, "withdraw", seed=1, result=only).status_code == 200
    found = levels(store)
    assert found["measurement"] == [3, 3]
    reindex.reindex(store)
    assert levels(store) == found


@pytest.mark.usefixtures("confirmed")
def test_a_spread_that_changes_is_applied_to_all_setups_of_the_hardware(
    store: Store, post: Poster
) -> None:
    """Owners who differ in one set-up are less certain in every other one."""
    here = [trusted.send(store, key, repeats(1))[0] for key in KEYS]
    assert {reproduction(post, id)["verdict"] for id in here} == {"reproduced"}
    before = reproduction(post, here[0])["tau"]
    other = results.make_cell(batch_size=128)
    for number, key in enumerate(KEYS):
        trusted.send(store, key, [STEP_NS * (100 + 9 * number) // 100], cell=other)
    told = reproduction(post, here[0])
    assert told["tau"] > before
    assert told["verdict"] == "undecided"
    found = levels(store)
    assert set(found["measurement"]) == {3}
    reindex.reindex(store)
    assert levels(store) == found


@pytest.mark.usefixtures("confirmed")
@pytest.mark.parametrize("operation", ["confirm", "doubt", "assign", "revoke"])
def test_a_decision_reads_a_setup_once(store: Store, post: Poster, operation: str) -> None:
    """Fewer statements than results, so none runs for each result."""
    for key in KEYS[1:]:
        trusted.send(store, key, repeats(1))
    trusted.send(store, KEYS[0], repeats(MANY))
    if operation == "confirm":
        decide(store, "doubt", owner=OWNERS[0])
    with statements(store) as executed:
        if operation == "revoke":
            assert said.revoked(post, 1, 1, since=0).status_code == 201
        elif operation == "assign":
            decide(store, "assign", key=results.key_id(KEYS[0]), owner="lab")
        else:
            decide(store, operation, owner=OWNERS[0])  # type: ignore[arg-type]
    assert len(executed) < MANY
    # The others are left with one other owner; a stranger's results are compared with both.
    expected = {"confirm": [4] * (MANY + 2), "revoke": [3] * (MANY + 2)}.get(
        operation, [3, 3] + [4] * MANY
    )
    assert levels(store)["measurement"] == expected


@pytest.mark.usefixtures("confirmed")
def test_results_of_a_group_read_their_setup_once(store: Store) -> None:
    for key in KEYS:
        trusted.send(store, key, repeats(3))
    counts = []
    for count in (1, 4):
        with statements(store) as executed:
            trusted.send(store, KEYS[0], repeats(count))
        counts.append(len(executed))
    assert counts[0] == counts[1]
