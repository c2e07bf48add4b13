"""Speed ranks, evidence is a mark, and a lone first place is held."""

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.fakes import results, said, trusted
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import JSON, Poster
from tests.fakes.medians import figures
from tests.fakes.projected import project
from tests.server.test_figures import SETUP, figure_of, repeat

from bench_protocol.payload import acts
from bench_server.db.store import Store
from bench_server.ingest import moderation
from bench_server.projection import reindex
from bench_server.ranking.compare import ranked
from bench_server.ranking.figures import Figure, Setup
from bench_server.ranking.owners import CONFIRMED, ESTABLISHED
from bench_server.ranking.score import best_of

KINDS = dict.fromkeys(("c1", "c2"), CONFIRMED) | dict.fromkeys(("e1", "e2", "e3"), ESTABLISHED)
CROWDED = "o3 o4 o5"
TUNED = SETUP._replace(recipe="tuned", data="generated", timing="long")


def measured(ns: float, owners: str, hardware: str = "a", setup: Setup = SETUP) -> list[Figure]:
    return [repeat(ns, owner, f"{owner}-m", hardware, setup) for owner in owners.split()]


def test_speed_alone_orders_a_board() -> None:
    """Neither owners nor data nor timing do; published figures have a place and no rank."""
    published = [figure_of([repeat(55, hardware="p")])._replace(published=True)]
    made = figures(
        [
            *measured(10, "o1", "lone"),
            *measured(60, "e1", "early"),
            *measured(100, "c1 c2", "slow"),
            *measured(90, "o1", "slow", TUNED),
            *measured(80, "c1 c2", "c"),
        ],
        KINDS,
    )
    ordered = sorted([*published, *made], key=lambda figure: figure.ns_per_sample)
    rows = ranked(ordered, one_each=True)
    assert [(row.rank, row.figure.hardware_slug, row.figure.ns_per_sample) for row in rows] == [
        *((1, "lone", 10), (None, "p", 55), (2, "early", 60), (3, "c", 80), (4, "slow", 90)),
    ]
    assert (rows[-1].setups, [other.ns_per_sample for other in rows[-1].others]) == (2, [100])
    assert [row.figure.backing for row in rows] == ["one", None, "one", "confirmed", "one"]


def test_a_held_figure_has_a_place_and_no_rank() -> None:
    fast, slow, only = (
        figure_of(measured(ns, "o1", hardware, setup))._replace(held=held)
        for ns, hardware, setup, held in (
            *((1, "a", TUNED, True), (50, "a", SETUP, False), (2, "b", SETUP, True)),
        )
    )
    rows = ranked([fast, only, slow], one_each=True)
    assert [(row.rank, row.figure, row.others) for row in rows] == [
        *((None, fast, ()), (None, only, ()), (1, slow, ())),
    ]
    assert best_of([fast, slow]) == {}  # not of the catalogue
    assert [row.setups for row in rows] == [1, 1, 1]


@pytest.mark.parametrize(
    ("owners", "together", "backing", "backed", "ns"),
    [
        ({"o1": 100}, "", "one", False, 100),
        ({"o1": 100, "o2": 101}, "", "several", True, 101),
        # An area counts once, by its fastest undisturbed owner.
        ({"o1": 100, "o2": 101}, "o1 o2", "one", False, 100),
        ({"o1": -100, "o2": 101}, "o1 o2", "one", False, 101),
        ({"o1": 300} | dict.fromkeys(CROWDED.split(), 100), CROWDED, "several", True, 300),
        (dict(o1=100, o2=101, **dict.fromkeys(CROWDED.split(), 99)), CROWDED, "several", True, 100),
        ({"e1": 100, "o1": 100}, "", "one", True, 100),
        ({"e1": 100, "e2": 101}, "e1 e2", "several", True, 101),
        ({"c1": 100, "e1": 100}, "", "several", True, 100),
        ({"c1": 100, "c2": 101, "o1": 1}, "c1 c2", "confirmed", True, 101),
    ],
)  # fmt: skip
def test_what_backs_a_figure(
    owners: dict[str, float], together: str, backing: str, backed: bool, ns: float
) -> None:
    rows = [repeat(abs(ns), owner, f"{owner}-m", disturbed=ns < 0) for owner, ns in owners.items()]
    (figure,) = figures(rows, KINDS, dict.fromkeys(together.split(), 7))
    assert (figure.backing, figure.backed, figure.ns_per_sample) == (backing, backed, ns)
    assert figure.owners.total == len(owners)


def decide(store: Store, kind: acts.OperatorAct, **about: str) -> None:
    moderation.decide(store, AUTHORITY, said.NOW, kind, **about)
    project(store)


def send(post: Poster, seed: int, step_ns: int, brand: str, network: int = 0, **cell: Any) -> str:
    key = results.private_key(seed)
    with TestClient(post.http.app, client=(f"10.0.{network}.{seed}", 1)) as elsewhere:
        body = results.enrollment(key)
        elsewhere.post("/api/v1/keys", content=body, headers=JSON).raise_for_status()
    machine = results.make_machine(brand, seed=seed)
    return post.made(key=key, machine=machine, step_ns=step_ns, cell=results.make_cell(**cell))


def rows(post: Poster, query: str = "") -> list[tuple[Any, ...]]:
    address = f"/api/v1/leaderboard?workload=mnist-cnn&{query}"
    found = post.http.get(address).raise_for_status().json()["rows"]
    names = ("rank", "hardware", "recipe", "backing", "held")
    return [tuple(row[name] for name in names) for row in found]


def test_a_lone_first_place_is_held_until_a_second_owner_backs_it(post: Poster) -> None:
    for seed in (2, 3):
        send(post, seed, 1_000_000, "AMD Ryzen 9")
    # A young site: slower than what two owners back, so it has its rank.
    send(post, 4, 2_000_000, "AMD Ryzen 5")
    ryzen9, ryzen5 = ("AMD Ryzen 9", "AMD Ryzen 5")
    assert rows(post) == [
        *((1, ryzen9, "naive", "several", False), (2, ryzen5, "naive", "one", False)),
    ]
    send(post, 5, 500_000, "AMD Ryzen 7")
    first = (None, "AMD Ryzen 7", "naive", "one", True)
    assert rows(post)[0] == first
    assert rows(post, "group=setup")[0] == first
    assert rows(post, "sort=-samples_per_second")[0] == first
    page = re.sub("<[^>]+>", "", post.http.get("/?workload=mnist-cnn").text)
    assert "mnist-cnn: AMD Ryzen 9 is fastest" in page
    assert "held: needs a second owner" in page
    scores = post.http.get("/api/v1/leaderboard?baseline=amd-ryzen-5&include=scores").json()[
        "scores"
    ]
    assert "amd-ryzen-7" not in [one["hardware_slug"] for one in scores]
    send(post, 6, 510_000, "AMD Ryzen 7")
    assert rows(post)[0] == (1, "AMD Ryzen 7", "naive", "several", False)


def test_a_comparison_names_who_has_no_row_and_why(post: Poster) -> None:
    for seed in (2, 3):
        for workload in ("mnist-cnn", "fashion-cnn", "fashion-mlp"):
            send(post, seed, 1_000_000, "AMD Ryzen 9", workload=workload)
    send(post, 5, 500_000, "AMD Ryzen 7", workload="mnist-cnn")
    things = ["amd-ryzen-7", "amd-ryzen-9"]

    def compared(mode: str) -> tuple[dict[str, Any], str]:
        query = f"ids={','.join(things)}&mode={mode}"
        rows = post.http.get(f"/api/v1/compare?{query}").raise_for_status().json()["rows"]
        page = re.sub("<[^>]+>", "", post.http.get(f"/compare?{query}").raise_for_status().text)
        return {row["workload"]: (row["common"], row["held"]) for row in rows}, page

    for mode in ("best", "same_software"):
        rows_of, page = compared(mode)
        assert rows_of["mnist-cnn"] == (False, [True, False])
        assert rows_of["fashion-cnn"] == (False, [False, False])
        assert page.count("AMD Ryzen 7 is held: needs a second owner") == 1
    send(post, 5, 2_000_000, "AMD Ryzen 7", workload="fashion-mlp")
    things.append("amd-ryzen-5")
    send(post, 6, 3_000_000, "AMD Ryzen 5", workload="fashion-mlp")
    for mode in ("best", "same_software"):
        rows_of, page = compared(mode)
        assert rows_of["fashion-mlp"] == (True, [False] * 3)
        assert rows_of["mnist-cnn"] == (False, [True, False, False])
        assert (
            "2 rows not counted above: AMD Ryzen 7 is held in 1 of them (it needs a second owner); "
            "AMD Ryzen 7 has no ranked figure in 1 of them; AMD Ryzen 5 has no ranked figure there"
        ) in page
        assert "not measured" not in page


def test_the_operator_ends_a_hold(post: Poster, store: Store) -> None:
    for seed in (2, 3):
        send(post, seed, 1_000_000, "AMD Ryzen 9")
    send(post, 4, 600_000, "AMD Ryzen 9", recipe="tuned")
    assert rows(post) == [
        (None, "AMD Ryzen 9", "tuned", "one", True),
        (1, "AMD Ryzen 9", "naive", "several", False),
    ]
    decide(store, "confirm", owner=acts.first_owner(results.key_id(results.private_key(4))))
    assert rows(post) == [(1, "AMD Ryzen 9", "tuned", "one", False)]


def test_far_beyond_others_of_its_hardware_is_held(post: Poster) -> None:
    for seed in (2, 3):
        send(post, seed, 500_000, "AMD Ryzen 9")
        send(post, seed, 3_000_000, "AMD Ryzen 5")
    send(post, 4, 2_100_000, "AMD Ryzen 5", recipe="pipeline")
    send(post, 5, 1_900_000, "AMD Ryzen 5", recipe="tuned")
    assert [(row[0], row[2], row[4]) for row in rows(post, "hardware=amd-ryzen-5")] == [
        *((None, "tuned", True), (2, "pipeline", False)),
    ]


def test_a_filter_by_backing_ranks_anew(post: Poster, store: Store) -> None:
    for seed, step in ((2, 1_000_000), (3, 2_000_000), (4, 3_000_000)):
        send(post, seed, step, f"AMD Ryzen {seed}")
    for seed in (5, 6):
        send(post, seed, 2_500_000, "AMD Ryzen 9")
        decide(store, "confirm", owner=acts.first_owner(results.key_id(results.private_key(seed))))
    assert [row[:2] for row in rows(post, "backing=confirmed")] == [(1, "AMD Ryzen 9")]
    assert [row[0] for row in rows(post)] == [None, None, 1, 2]
    refused = post.http.get("/api/v1/leaderboard?backing=much")
    assert (refused.status_code, "backing" in refused.text) == (422, True)


def test_no_crowd_of_strangers_holds_back_a_confirmed_owner(post: Poster, store: Store) -> None:
    """Twenty make an outlier of a stranger's result, of nobody's beside a confirmed owner."""
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
    assert [post.http.get(f"/api/v1/results/{id}").json()["ranked"] for id in ids] == counted


@pytest.mark.parametrize("step_ns", [100_000, 10_000_000])
def test_no_crowd_of_new_owners_moves_a_figure_tenfold(post: Poster, step_ns: int) -> None:
    for seed in range(1, 18):
        post.enroll(results.private_key(seed))
        post.made(key=results.private_key(seed), step_ns=step_ns if seed > 5 else 1_000_000 + seed)
    (row,) = post.http.get("/api/v1/leaderboard?workload=mnist-cnn").json()["rows"]
    assert row["owners"] == 5
    assert row["samples_per_second"] == pytest.approx(64_000, rel=1e-4)


def test_a_trust_level_selects_rows(post: Poster, store: Store) -> None:
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
        assert len(shown(trust_level="2", group=group)) == 2
        assert shown(trust_level="3", group=group) == ["intel-core-i7-8700"]
        assert shown(trust_level="4", group=group) == []


def test_level_1_is_not_ranked(post: Poster) -> None:
    identity = post.made(challenge=None)
    answer = post.http.get(f"/api/v1/results/{identity}").json()
    assert (answer["ranked"], answer["trust_level"]) == (False, 1)
    assert answer["unranked_reason"] == (
        "trust level 1: measured without a challenge, so it may have been measured at any time"
    )
    assert post.http.get("/api/v1/leaderboard?workload=mnist-cnn").json()["rows"] == []
