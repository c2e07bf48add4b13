"""Places rest on evidence: tiers, confirmed owners, and the fastest of several set-ups."""

import re

import pytest
from tests.fakes import results, said, trusted
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster, pages
from tests.fakes.medians import figures
from tests.fakes.projected import project
from tests.server.test_figures import SETUP, figure_of, repeat

from bench_protocol.payload import acts
from bench_server.db.store import Store
from bench_server.ingest import moderation
from bench_server.projection import reindex
from bench_server.ranking.compare import RankedRow, ranked
from bench_server.ranking.figures import Figure, Setup
from bench_server.ranking.owners import CONFIRMED, ESTABLISHED

KINDS = dict.fromkeys(("c1", "c2"), CONFIRMED) | dict.fromkeys(("e1", "e2", "e3"), ESTABLISHED)
TUNED = SETUP._replace(recipe="tuned")
GENERATED = SETUP._replace(data="generated")
TUNED_GENERATED = TUNED._replace(data="generated")


def measured(ns: float, owners: str, hardware: str = "a", setup: Setup = SETUP) -> list[Figure]:
    """One repeat by each of these owners."""
    return [repeat(ns, owner, f"{owner}-m", hardware, setup) for owner in owners.split()]


def places(*rows: list[Figure]) -> list[RankedRow]:
    every = [figure for row in rows for figure in row]
    return ranked(figures(every, KINDS), one_each=True)


def test_a_place_rests_on_the_best_tier() -> None:
    """One owner's one repeat in a set-up that nobody else has takes no place."""
    (row,) = places(
        measured(10, "stranger", setup=TUNED),
        measured(100, "e1 e2 e3"),
        measured(1, "o1 o2 o3 o4", setup=TUNED_GENERATED),
        measured(90, "c1 c2 o1", setup=GENERATED),
    )
    assert (row.figure.ns_per_sample, row.figure.tier, row.setups) == (90, "confirmed", 1)
    assert [(f.ns_per_sample, f.tier) for f in row.others] == [
        (1, "new"),
        (10, "new"),
        (100, "several"),
    ]


def test_boards_order_by_tier_and_then_by_speed() -> None:
    copied = figure_of([repeat(1, hardware="p")])
    published = [copied._replace(published=True)]
    made = figures(
        [
            *measured(10, "o1", "lone"),
            *measured(5, "o1 o2 o3 o4", "crowd"),
            *measured(60, "e1", "early"),
            *measured(50, "e1 e2 e3", "b"),
            *measured(100, "c1 c2", "slow"),
            *measured(80, "c1 c2", "c"),
        ],
        KINDS,
    )
    rows = ranked([*published, *made], one_each=True)
    assert [(row.rank, row.figure.hardware_slug) for row in rows] == [
        *((1, "c"), (2, "slow"), (3, "b"), (4, "early")),
        *((None, "p"), (5, "crowd"), (6, "lone")),
    ]


# -- on a server -----------------------------------------------------------------------------------


def decide(store: Store, kind: acts.OperatorAct, **about: str) -> None:
    moderation.decide(store, AUTHORITY, said.NOW, kind, **about)
    project(store)


def test_a_page_of_several_tiers_has_headings(post: Poster, store: Store) -> None:
    heading = (
        "Provisional: measured by one confirmed owner, or by fewer than three established ones"
    )
    post.made(step_ns=500_000)
    assert heading not in post.http.get("/?workload=mnist-cnn").text
    machine = results.make_machine("Intel(R) Core(TM) i9-9900", seed=9)
    for seed in (1, 2, 3):
        post.enroll(results.private_key(seed))
        post.made(key=results.private_key(seed), machine=machine, step_ns=1_000_000)
    for seed in (1, 2):
        decide(store, "confirm", owner=acts.first_owner(results.key_id(results.private_key(seed))))
    text = post.http.get("/?workload=mnist-cnn").text
    fast, slow = (f'href="/hardware/intel-core-{name}"' for name in ("i7-8700", "i9-9900"))
    assert text.index("Measured by two or more confirmed owners") < text.index(slow)
    assert text.index(slow) < text.index(heading) < text.index(fast)
    found = pages(post.http, "/leaderboard?workload=mnist-cnn&limit=1")
    rows = [(row["rank"], row["tier"]) for page in found for row in page["rows"]]
    assert rows == [(1, "confirmed"), (2, "provisional")]
    assert "2 confirmed, 1 new; only the 2 confirmed count" in text
    # The first row is not the fastest, and the pages say so.
    board, workload = "/?workload=mnist-cnn", "/workloads/mnist-cnn"
    contested = (
        "Intel Core i7-8700 looks faster, but ranks lower: fewer owners, or new ones, measured it."
    )
    for page in (board, workload):
        words = re.sub("<[^>]+>", "", post.http.get(page).text)
        assert contested in words
        assert "Intel Core i9-9900 ranks first on mnist-cnn" in words
        assert "fastest</h1>" not in post.http.get(page).text
    assert "mnist-cnn: small convolutional network on MNIST." in post.http.get(board).text
    assert "? Small convolutional network on MNIST." in post.http.get(workload).text
    searched = post.http.get("/?workload=mnist-cnn&q=i9").text
    assert contested not in re.sub("<[^>]+>", "", searched)


def test_no_crowd_of_strangers_holds_back_a_confirmed_owner(post: Poster, store: Store) -> None:
    """Twenty slow owners make an outlier of a stranger's result, never of a confirmed owner's, and
    of nobody's once there is one."""
    for seed in range(1, 24):
        post.enroll(results.private_key(seed))
    for seed in range(3, 23):
        post.made(key=results.private_key(seed), step_ns=3_000_000 + seed)
    decide(store, "confirm", owner=acts.first_owner(results.key_id(results.private_key(1))))
    ids = [post.made(key=results.private_key(seed), step_ns=1_000_000) for seed in (2, 1, 23)]
    counted = [post.http.get(f"/api/v1/results/{id}").json()["ranked"] for id in ids]
    assert counted == [False, True, True]
    page = post.http.get(f"/results/{ids[0]}").text
    assert "Held back for review: 3 times the median speed of" in page
    reindex.reindex(store)
    again = [post.http.get(f"/api/v1/results/{id}").json()["ranked"] for id in ids]
    assert again == counted


@pytest.mark.parametrize("step_ns", [100_000, 10_000_000])
def test_no_crowd_of_new_owners_moves_a_figure_tenfold(post: Poster, step_ns: int) -> None:
    for seed in range(1, 18):
        post.enroll(results.private_key(seed))
        post.made(key=results.private_key(seed), step_ns=step_ns if seed > 5 else 1_000_000 + seed)
    (row,) = post.http.get("/api/v1/leaderboard?workload=mnist-cnn").json()["rows"]
    assert row["owners"] == 5
    assert row["samples_per_second"] == pytest.approx(64_000, rel=1e-4)


def test_a_trust_level_selects_rows(post: Poster, store: Store) -> None:
    """By the level that more than half of what counts has."""
    cell = results.make_cell()
    measurement = results.make_measurement(cell)
    product = results.make_product(cell, measurement)
    slower = product.model_copy(update={"duration_ns": 2 * product.duration_ns})
    post.made(
        machine=results.make_machine("Intel(R) Core(TM) i9-9900", seed=9),
        measurement=measurement.model_copy(update={"gemm": slower}),
    )
    trusted.send(store, results.private_key(), [1_000_000, 1_000_000])

    def shown(**query: str) -> list[str]:
        address = "/api/v1/leaderboard"
        answer = post.http.get(address, params={"workload": "mnist-cnn", **query}).json()
        return [row["hardware_slug"] for row in answer["rows"]]

    for group in ("hardware", "machine", "setup"):
        assert len(shown(trust="2", group=group)) == 2
        assert shown(trust="3", group=group) == ["intel-core-i7-8700"]
        assert shown(trust="3", group=group, where="os=linux") == ["intel-core-i7-8700"]
        assert shown(trust="4", group=group) == []


def test_level_1_is_not_ranked(post: Poster) -> None:
    identity = post.made(challenge=None)
    answer = post.http.get(f"/api/v1/results/{identity}").json()
    assert (answer["ranked"], answer["trust_level"]) == (False, 1)
    assert answer["unranked_reason"] == (
        "trust level 1: measured without a challenge, so it may have been measured at any time"
    )
    assert post.http.get("/api/v1/leaderboard?workload=mnist-cnn").json()["rows"] == []
