"""A hardware's best: what disturbed set-ups are for, and what the fastest of several may claim."""

import math
from statistics import fmean

import numpy as np
import pytest
from tests.fakes import results
from tests.fakes.client import Poster, get
from tests.server.test_disturbed import LOAD
from tests.server.test_ranges import LONG, around, hardware, machine, repeat

from bench_protocol.catalogue.matrix import RECIPES
from bench_server.ranking import best
from bench_server.ranking.compare import compare, ranked
from bench_server.ranking.figures import Figure

SETUPS = [LONG._replace(framework=name) for name in "abcdefghijkl"]
SEEDS = 1_500


def figure(ns: float, place: int = 0, between: float = 0.01) -> Figure:
    times = (ns * math.exp(-between), ns, ns * math.exp(between))
    return hardware([repeat(one, setup=SETUPS[place]) for one in times])


def chosen(*figures: Figure) -> Figure:
    found = best.best(figures)
    assert found
    return found


def test_a_disturbed_set_up_is_best_only_where_all_are() -> None:
    fast, calm, slow = figure(80)._replace(disturbed=True), figure(90, 1), figure(99, 2)
    held = figure(50, 3)._replace(held=True)
    assert chosen(held, fast, calm, slow).id == chosen(slow, calm, fast).id == calm.id
    (row,) = ranked([fast, calm, slow], one_each=True)
    assert (row.figure.id, row.others, row.setups) == (calm.id, (fast, slow), 2)
    with_held = ranked([held, fast, calm], one_each=True)
    assert [(one.rank, one.figure.id) for one in with_held] == [(None, held.id), (1, calm.id)]
    assert chosen(slow._replace(disturbed=True), fast).id == fast.id
    assert best.best([held]) is None
    order = [one.id for one in best.best_first([fast, slow, held, calm])]
    assert order == [calm.id, slow.id, fast.id]


def test_the_lead_is_over_those_that_may_be_as_fast() -> None:
    """Within the noise of both sides, 1 % a side; what is certainly slower changes nothing."""
    near = [figure(100), figure(100.5, 1), figure(101.2, 2)]
    far = [figure(102, 3), figure(150, 4)]
    led, plain = chosen(*far, *near), near[0]
    expected = fmean(math.log(one / 100) for one in (100, 100.5, 101.2))
    assert led.lead == pytest.approx(expected)
    assert chosen(plain, *far).lead == plain.lead == 0
    # The figure and the upper end are as before, the lower end reaches down.
    assert led.ns_per_sample == plain.ns_per_sample
    assert around(led).high == around(plain).high
    assert around(led).low == pytest.approx(around(plain).low * math.exp(-expected))
    # By another value than speed nothing was chosen for its speed.
    (by_energy,) = ranked([near[1], near[0], near[2]], one_each=True)
    assert (by_energy.figure.id, by_energy.figure.lead) == (near[1].id, 0)


@pytest.mark.parametrize(("time", "kind"), [(97.0, "no_difference"), (80.0, "faster")])
def test_a_speed_up_has_the_lead_of_both_sides_and_so_has_its_verdict(
    time: float, kind: str
) -> None:
    first, second = (
        hardware([repeat(ns + n / 10, f"m{n}") for n in range(4)]) for ns in (time, 100)
    )
    led = first._replace(lead=math.log(1.05))
    plain, found, back = compare(first, second), compare(led, second), compare(second, led)
    assert (plain.verdict_kind, found.verdict_kind) == ("faster", kind)
    assert (found.speed_up, found.speed_up_high) == (plain.speed_up, plain.speed_up_high)
    assert plain.speed_up_low is not None
    assert found.speed_up_low == pytest.approx(plain.speed_up_low / 1.05)
    assert back.speed_up_high == pytest.approx(1.05 / plain.speed_up_low)
    assert (back.verdict_kind == "slower") is (kind == "faster")


@pytest.mark.parametrize(
    ("count", "bias", "without"),
    [(1, 0, 0.88), (2, 0.011, 0.8), (4, 0.021, 0.7), (12, 0.033, 0.59)],
)
def test_the_range_of_the_fastest_of_equal_set_ups_holds_the_truth(
    count: int, bias: float, without: float
) -> None:
    """The lead makes up for the choice: the truth is in the range about as often as with one.
    Three repeats of each set-up on one machine are 3 % apart."""
    times = 100 * np.exp(np.random.default_rng(11).normal(0, 0.03, (SEEDS, count, 3)))
    biases, alone, with_lead = [], 0, 0
    for of_setups in times.tolist():
        rows = ([repeat(ns, setup=SETUPS[n]) for ns in row] for n, row in enumerate(of_setups))
        fastest = chosen(*map(machine, rows))
        share = fastest.ns_per_sample / 100
        biases.append(-math.log(share))
        alone += around(fastest._replace(lead=0.0)).low <= share
        with_lead += around(fastest).low <= share
    assert (fmean(biases), alone / SEEDS) == pytest.approx((bias, without), abs=0.01)
    assert with_lead / SEEDS >= 0.86


def test_every_answer_leaves_a_disturbed_set_up_out(post: Poster) -> None:
    i7, ryzen = "intel-core-i7-8700", "amd-ryzen-9"
    post.baseline(ryzen)
    post.made(machine=results.make_machine("AMD Ryzen 9", seed=2), step_ns=1_000_000)
    for recipe, step_ns, warnings in zip(
        RECIPES, (800_000, 500_000, 200_000), ((), (), (LOAD,)), strict=True
    ):
        post.made(cell=results.make_cell(recipe=recipe), step_ns=step_ns, warnings=warnings)
    ratio = pytest.approx(2.0, rel=1e-3)
    board = get(post.http, "/leaderboard?workload=mnist-cnn&include=others")
    (row,) = (one for one in board["rows"] if one["hardware_slug"] == i7)
    assert row.items() >= {"rank": 1, "recipe": "pipeline", "disturbed": False, "setups": 2}.items()
    assert row["speed_up"] == ratio
    assert [one["disturbed"] for one in row["others"]] == [True, False]
    scores = get(post.http, "/leaderboard?include=scores")["scores"]
    (score,) = (one["score"] for one in scores if one["hardware_slug"] == i7)
    assert score["value"] == ratio
    of_i7 = get(post.http, f"/hardware/{i7}")
    assert (of_i7["score"], of_i7["place"]["recipe"]) == (score, "pipeline")
    assert get(post.http, f"/compare?ids={ryzen},{i7}")["things"][1]["speed_up"] == ratio
    machine_id = get(post.http, f"/results?hardware={i7}")["results"][0]["machine_id"]
    assert get(post.http, f"/machines/{machine_id}")["places"][0]["recipe"] == "pipeline"
