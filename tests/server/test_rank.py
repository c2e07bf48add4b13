"""Ranking: known answers by hand, and what must not change an answer."""

import itertools
import math
import random

from hypothesis import given
from hypothesis import strategies as st

from bench_server import rank
from bench_server.rank import Repeat, Setup

SETUP = Setup("tensorflow", "cpu", "naive", 64, "float32", "real")
COUNTER = itertools.count()


def repeat(
    ns: float, owner: str = "o1", machine: str = "m1", hardware: str = "a", setup: Setup = SETUP
) -> Repeat:
    return Repeat(
        f"{next(COUNTER):016x}", owner, machine, hardware.upper(), hardware, setup, ns, 0.01, 1
    )


def test_median_of_owners_of_machines_of_repeats() -> None:
    rows = [
        *(repeat(ns, "o1", "m1") for ns in (90, 100, 200)),  # machine 100
        repeat(140, "o1", "m2"),  # owner 120
        repeat(300, "o2", "m3"),
        repeat(400, "o3", "m4"),
    ]
    (figure,) = rank.figures(rows)
    assert figure.ns_per_sample == 300
    assert (figure.repeats, figure.machines, figure.owners) == (6, 4, 3)
    assert not figure.provisional
    assert (figure.fastest_ns_per_sample, figure.slowest_ns_per_sample) == (90, 400)


def test_below_three_owners_a_figure_is_provisional() -> None:
    assert rank.figures([repeat(1, "o1"), repeat(2, "o2", "m2")])[0].provisional


def test_generated_and_real_data_never_share_a_figure() -> None:
    generated = SETUP._replace(data="generated")
    found = rank.figures([repeat(100), repeat(50, setup=generated)])
    assert [(f.setup.data, f.ns_per_sample) for f in found] == [("generated", 50), ("real", 100)]
    (row,) = rank.by_hardware(found)
    assert row.figure.setup.data == "real"
    assert [other.setup.data for other in row.others] == ["generated"]


def test_each_hardware_stands_once_with_its_fastest_setup() -> None:
    tuned = SETUP._replace(recipe="tuned")
    found = rank.figures(
        [repeat(100), repeat(60, setup=tuned), repeat(80, hardware="b", machine="m2")]
    )
    rows = rank.by_hardware(found)
    assert [(r.rank, r.figure.hardware_slug, r.figure.setup.recipe) for r in rows] == [
        (1, "a", "tuned"),
        (2, "b", "naive"),
    ]
    assert [r.rank for r in rank.by_setup(found)] == [1, 2, 3]


times = st.floats(1e-3, 1e9)
sides = st.lists(
    st.tuples(times, st.sampled_from("pqr"), st.sampled_from("xyz")), min_size=1, max_size=12
)


@given(sides, st.floats(0.1, 10), st.randoms())
def test_scaling_and_order(
    rows: list[tuple[float, str, str]], c: float, rnd: random.Random
) -> None:
    made = [repeat(ns, owner, owner + machine) for ns, owner, machine in rows]
    (figure,) = rank.figures(made)
    (scaled,) = rank.figures([r._replace(ns_per_sample=r.ns_per_sample * c) for r in made])
    assert math.isclose(scaled.ns_per_sample, figure.ns_per_sample * c, rel_tol=1e-12)
    rnd.shuffle(made)
    assert rank.figures(made) == [figure]


def test_one_owner_is_one_value() -> None:
    honest = [repeat(100, "o1"), repeat(110, "o2", "m2"), repeat(120, "o3", "m3")]
    flood = [repeat(1, "o4", f"m4{i}") for i in range(50)]
    (figure,) = rank.figures([*honest, *flood])
    assert figure.ns_per_sample == 105


def test_a_verdict_needs_three_on_each_side() -> None:
    few = rank.compare([repeat(50), repeat(50)], [repeat(100)] * 3)
    assert (few.kind, few.speed_up, few.low, few.n_a, few.n_b) == ("too_few_runs", 2, None, 2, 3)
    assert few.verdict == "too few runs (2 and 3 repeats)"


def test_verdicts() -> None:
    slow = [repeat(ns, machine="m1") for ns in (112, 113, 111.5, 112.4)]
    fast = [repeat(ns, machine="m2") for ns in (100, 101, 99.5, 100.2)]
    found = rank.compare(fast, slow)
    assert found.kind == "faster"
    assert found.verdict == "12 % faster, 95 % CI 11 to 13"
    assert rank.compare(slow, fast).kind == "slower"
    assert rank.compare(slow, fast).verdict.startswith("11 % slower, 95 % CI 10 to 1")
    same = rank.compare(fast, [repeat(ns, machine="m3") for ns in (98, 103, 100, 99)])
    assert same.verdict == "no credible difference"


def test_many_repeats_on_one_machine_do_not_speak_for_others() -> None:
    one = [repeat(100 + i / 10, "o1", "m1") for i in range(30)]
    two = [repeat(200, "o2", f"n{i % 3}") for i in range(9)]
    found = rank.compare(one, two)
    assert (found.unit, found.n_a, found.n_b, found.kind) == ("machines", 1, 3, "too_few_runs")
