"""Change points: how often an unchanged history shows one, and how often a change is found."""

import numpy as np
import pytest

from bench_protocol.statistics.change_points import change_points

HISTORIES = 400
WITHIN_RUN = 0.01


def runs(
    random: np.random.Generator, count: int, between: float, slow: float = 0.0
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Medians of three repeats of each run: noise between runs, 1 % within; some 50 % slow."""
    of_run = random.normal(0, between, count) + np.log(1.5) * (random.random(count) < slow)
    repeats = of_run[:, None] + random.normal(0, WITHIN_RUN, (count, 3))
    medians: np.ndarray[tuple[int], np.dtype[np.float64]] = np.median(np.exp(repeats), axis=1)
    return medians


@pytest.mark.parametrize(
    ("count", "between", "slow"),
    [
        (6, 0.02, 0.05),
        (10, 0.02, 0.05),
        (20, 0.01, 0.0),
        (20, 0.02, 0.0),
        (20, 0.02, 0.05),
        (60, 0.02, 0.05),
    ],
)
def test_unchanged_histories_rarely_show_a_change(count: int, between: float, slow: float) -> None:
    """At most 5 % of them; the test is made for 2 %. Over repeats half of them and more did."""
    random = np.random.default_rng(count)
    shown = sum(
        bool(change_points(runs(random, count, between, slow).tolist())) for _ in range(HISTORIES)
    )
    assert shown / HISTORIES < 0.05


@pytest.mark.parametrize(("each", "least"), [(6, 0.55), (10, 0.8), (20, 0.87)])
def test_a_step_of_5_percent_is_found(each: int, least: float) -> None:
    """2 % noise between runs. Found: 0.7, 0.93 and 1.0; here also placed to within one run."""
    random = np.random.default_rng(each)
    near = 0
    for _ in range(HISTORIES):
        times = runs(random, 2 * each, 0.02)
        times[each:] *= 1.05
        near += any(abs(place - each) <= 1 for place in change_points(times.tolist()))
    assert near / HISTORIES >= least


def test_two_steps() -> None:
    steady = runs(np.random.default_rng(2), 60, 0.01)
    stepped = steady.copy()
    stepped[20:45] *= 1.2
    assert change_points(stepped.tolist()) == [20, 45]
    assert change_points(steady.tolist()) == []


def test_a_step_of_less_than_half_a_percent_is_none() -> None:
    assert change_points([100.0] * 30 + [100.2] * 30) == []
    assert change_points([100.0] * 30 + [101.0] * 30) == [30]


def test_four_runs_on_a_side_are_needed() -> None:
    assert change_points([100.0] * 20 + [200.0] * 3) == []
    assert change_points([100.0] * 20 + [200.0] * 4) == [20]
    assert change_points([100.0] * 3 + [200.0] * 3) == []
    assert change_points([]) == []


def test_equal_times_have_equal_changes() -> None:
    times = runs(np.random.default_rng(3), 30, 0.02).tolist()
    assert change_points(times) == change_points(list(times))
