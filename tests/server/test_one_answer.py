"""Board, score and comparison give one number for the same two machines, and ranks survive a
search."""

from math import prod

import pytest
from tests.fakes import results
from tests.fakes.client import Poster, get

from bench_protocol.catalogue.matrix import Device
from bench_server.ranking import score
from bench_server.ranking.compare import Comparison

pytestmark = pytest.mark.sqlite
MAC, BOX = "apple-m4-max-40-core-gpu", "nvidia-geforce-rtx-4090"
M4 = results.make_machine("Apple M4 Max", ("metal", "Apple M4 Max", 40), seed=1)
RTX = results.make_machine("AMD Ryzen 9 7950X", ("cuda", "NVIDIA GeForce RTX 4090", None), seed=2)
METAL, CUDA = Device(kind="metal"), Device(kind="cuda")
# Nanoseconds a step by workload and set-up: only TensorFlow is on both.
TIMES = {
    "mnist-cnn": {
        (MAC, "tensorflow", "tuned"): 400_000,
        (MAC, "mlx", "tuned"): 200_000,
        (BOX, "tensorflow", "tuned"): 210_000,
        (BOX, "torch", "tuned"): 100_000,
    },
    "fashion-lstm": {
        (MAC, "tensorflow", "naive"): 900_000,
        (MAC, "mlx", "naive"): 300_000,
        (BOX, "tensorflow", "naive"): 450_000,
        (BOX, "torch", "tuned"): 50_000,
    },
}
BEST = {"mnist-cnn": 2.0, "fashion-lstm": 6.0}


@pytest.fixture
def fleet(post: Poster) -> Poster:
    post.baseline(MAC)
    for workload, times in TIMES.items():
        for (slug, framework, recipe), step_ns in times.items():
            machine, device = (M4, METAL) if slug == MAC else (RTX, CUDA)
            for run in (1, 2, 3):
                cell = results.make_cell(
                    workload, framework=framework, recipe=recipe, device=device
                )
                post.made(cell=cell, machine=machine, step_ns=step_ns + run, run_id=f"{run:032x}")
    return post


def test_board_score_and_comparison_agree(fleet: Poster) -> None:
    rows = get(fleet.http, f"/leaderboard?baseline={MAC}")["rows"]
    on_boards = {row["workload"]: row["speed_up"] for row in rows if row["hardware_slug"] == BOX}
    assert on_boards == pytest.approx(BEST, rel=1e-4)
    compared = get(fleet.http, f"/compare?ids={MAC},{BOX}")
    assert compared["mode"] == "best"
    assert {row["workload"]: row["cells"][1]["speed_up"] for row in compared["rows"]} == on_boards
    assert [cell["framework"] for cell in compared["rows"][0]["cells"]] == ["mlx", "torch"]
    thing = compared["things"][1]
    assert thing["speed_up"] == pytest.approx(prod(BEST.values()) ** 0.5, rel=1e-4)
    (scored,) = (
        one["score"]
        for one in get(fleet.http, f"/leaderboard?baseline={MAC}&include=scores")["scores"]
        if one["hardware_slug"] == BOX
    )
    assert scored["value"] == thing["speed_up"]
    assert (scored["value_low"], scored["value_high"]) == (
        thing["speed_up_low"],
        thing["speed_up_high"],
    )
    assert scored["value_low"] < scored["value"] < scored["value_high"]
    # Without a choice the baseline is the same on every board, on the hardware's page and at home.
    page = get(fleet.http, f"/hardware/{BOX}")["score"]
    (own,) = (
        one
        for one in get(fleet.http, "/leaderboard?include=scores")["scores"]
        if one["hardware_slug"] == BOX
    )
    assert page == own["score"]


def test_a_further_thing_changes_nothing_between_two(fleet: Poster) -> None:
    slow = results.make_machine("Intel(R) Core(TM) i7-8700", seed=3)
    fleet.made(cell=results.make_cell("mnist-cnn"), machine=slow, step_ns=9_000_000)
    for mode in ("best", "same_software"):
        asked = f"/compare?mode={mode}&ids={MAC},{BOX}"
        two, three = (get(fleet.http, asked + more) for more in ("", ",intel-core-i7-8700"))
        assert three["things"][:2] == two["things"]
        rows = [row["cells"][:2] for row in three["rows"] if any(row["cells"][:2])]
        assert rows == [row["cells"] for row in two["rows"]]
    page = fleet.http.get(f"/compare?ids={MAC},{BOX},intel-core-i7-8700").text
    assert "over the 1 to 2 of 2 workloads that both have" in page


def test_the_other_mode_compares_the_same_software(fleet: Poster) -> None:
    compared = get(fleet.http, f"/compare?ids={MAC},{BOX}&mode=same_software")
    common = [row for row in compared["rows"] if row["common"]]
    assert {row["framework"] for row in common} == {"tensorflow"}
    assert compared["things"][1]["speed_up"] == pytest.approx((400 / 210 * 2) ** 0.5, rel=1e-3)
    result = get(fleet.http, "/results")["results"][0]["id"]
    for field, value in (("mode", "best"), ("across", "batch_size")):
        answer = fleet.http.get(f"/api/v1/compare?ids={MAC},{result}&{field}={value}")
        assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_rows_of_the_same_software_are_in_the_order_of_the_matrix(post: Poster) -> None:
    setups = [("tensorflow", recipe) for recipe in ("naive", "pipeline", "tuned")]
    setups.append(("torch", "naive"))
    for machine, device in ((M4, METAL), (RTX, CUDA)):
        for framework, recipe in reversed(setups):
            cell = results.make_cell(framework=framework, recipe=recipe, device=device)
            post.made(cell=cell, machine=machine)
    rows = get(post.http, f"/compare?ids={MAC},{BOX}&mode=same_software")["rows"]
    assert [(row["framework"], row["recipe"]) for row in rows] == setups


def test_a_search_leaves_ranks_alone(fleet: Poster) -> None:
    board = "/leaderboard?workload=mnist-cnn"
    ranks = {row["hardware_slug"]: row["rank"] for row in get(fleet.http, board)["rows"]}
    assert ranks == {BOX: 1, MAC: 2}
    for search in ("q=4090", f"hardware={MAC}", "q=apple"):
        (row,) = get(fleet.http, f"{board}&{search}")["rows"]
        assert row["rank"] == ranks[row["hardware_slug"]]
    # What changes the question ranks again.
    (row,) = get(fleet.http, f"{board}&device=metal")["rows"]
    assert row["rank"] == 1


def test_the_baseline_stays_through_filters_and_has_no_interval(fleet: Poster) -> None:
    whole = get(fleet.http, "/leaderboard?workload=mnist-cnn")
    (baseline,) = whole["baselines"]
    own = next(r for r in whole["rows"] if r["hardware_slug"] == baseline["hardware_slug"])
    assert (own["speed_up"], own["speed_up_low"], own["speed_up_high"]) == (1, None, None)
    for chosen in ("device=cuda", "framework=torch", "q=4090", "group=setup", "limit=1"):
        assert get(fleet.http, f"/leaderboard?workload=mnist-cnn&{chosen}")["baselines"] == [
            baseline
        ]


def test_the_bounds_of_a_mean_of_speed_ups() -> None:
    def one(speed_up: float, low: float | None, high: float | None) -> Comparison:
        return Comparison(speed_up, low, high, 0.01, 0.01, 3, 3, "runs", "machines", "faster", "")

    found = score.overall([one(2, 1.5, 3), one(8, 6, 12)])
    assert found is not None
    assert (found.speed_up, found.speed_up_low, found.speed_up_high) == pytest.approx((4, 3, 6))
    bounds = score.overall([one(2, 1.5, 3), one(8, None, None)])
    assert bounds is not None
    assert (bounds.speed_up_low, bounds.speed_up_high) == (None, None)
    assert score.overall([]) is None
