"""Intervals and verdicts: computed by hand, and their coverage in simulations."""

import math
from statistics import median

import numpy as np
import pytest

from bench_protocol.statistics import comparison

PROCESS_SPREAD = 0.03
BLOCK_SPREAD = 0.02
BLOCKS = 20
CORRELATION = 0.7
TRUE_RATIO = 1.1
DRAWS = 3000


def test_welch_by_hand() -> None:
    """Logarithms 0, 0.1, 0.2 against 1, 1.1, 1.2: variances 0.01, 4 degrees of freedom, t 2.776445;
    a median of three has 1.3742 times the variance of a mean, by the formula."""
    verdict = comparison.compare(
        [math.exp(0.1 * n) for n in range(3)], [math.exp(1 + 0.1 * n) for n in range(3)]
    )
    margin = 2.776445 * math.sqrt(1.37420 * 0.02 / 3)
    assert math.isclose(verdict.speed_up, math.e)
    assert math.isclose(verdict.low, math.exp(1 - margin), rel_tol=1e-4)
    assert math.isclose(verdict.high, math.exp(1 + margin), rel_tol=1e-4)


def test_the_speed_up_is_the_ratio_of_the_figures() -> None:
    """One slow value of three moves neither median; a geometric mean would say 11 % slower."""
    verdict = comparison.compare([1, 1.01, 1.5], [1.02, 1.03, 1.01])
    assert verdict.speed_up == 1.02 / 1.01
    assert math.isclose(verdict.low * verdict.high, verdict.speed_up**2)
    low, high = comparison.median_interval(1.01, [1, 1.01, 1.5])
    assert math.isclose(low * high, 1.01**2)


@pytest.mark.parametrize("size", [3, 4, 5, 6, 10, 11, 30])
def test_the_variance_of_a_median_against_that_of_a_mean(size: int) -> None:
    samples = np.random.default_rng(size).normal(size=(100_000, size))
    factor = np.sort(samples, axis=1)[:, size // 2].var() * size
    assert math.isclose(comparison.median_factor(size), factor, rel_tol=0.04)


def test_the_median_of_two_was_measured() -> None:
    assert comparison.compare([1, 3], [10, 12]).speed_up == 4


@pytest.mark.parametrize("sides", [(4, 4), (3, 4), (4, 9), (9, 10)])
def test_even_and_unequal_numbers_hold_the_truth(sides: tuple[int, int]) -> None:
    """3 % between values. The slower of two in the middle biases one side and not the other."""
    random = np.random.default_rng(sum(sides))
    held = 0
    for _ in range(DRAWS):
        a, b = (np.exp(random.normal(0, PROCESS_SPREAD, size)).tolist() for size in sides)
        verdict = comparison.compare(a, b)
        held += verdict.low <= 1 <= verdict.high
    assert 0.94 <= held / DRAWS <= 0.985


def test_holm_by_hand() -> None:
    """The example of Holm's procedure: each p-value times the number of those not yet rejected,
    never below the one before."""
    adjusted = comparison.holm([0.01, 0.04, 0.03, 0.005])
    assert [round(value, 9) for value in adjusted] == [0.03, 0.06, 0.06, 0.02]
    assert comparison.holm([]) == []
    assert comparison.holm([0.6, 0.7]) == [1.0, 1.0]


def test_pairs_by_hand() -> None:
    """Logarithms 0.1, 0.2, 0.3: 2 degrees of freedom, t 4.302653."""
    base = [1.0, 20.0, 3.0]
    verdict = comparison.compare_pairs([b / math.exp(0.1 * n) for n, b in enumerate(base, 1)], base)
    margin = 4.302653 * 0.1 / math.sqrt(3)
    assert math.isclose(verdict.speed_up, math.exp(0.2))
    assert math.isclose(verdict.low, math.exp(0.2 - margin), rel_tol=1e-6)
    assert math.isclose(verdict.high, math.exp(0.2 + margin), rel_tol=1e-6)


def test_below_three_there_is_no_interval() -> None:
    verdict = comparison.compare([1.0, 1.0], [2.0] * 9)
    assert (verdict.kind, verdict.speed_up) == ("too_few_runs", 2.0)
    assert verdict.low is verdict.high is None
    assert verdict.words == "not enough data: needs 3 runs a side, has 2 and 9"
    for count in (1, 2):
        pairs = comparison.compare_pairs([1.0] * count, [2.0] * count)
        assert pairs.words == f"not enough data: needs 3 pairs, has {count}"


def test_words() -> None:
    sides = [100, 101, 99.5, 100.2], [112, 113, 111.5, 112.4]
    faster = comparison.compare(*sides)
    assert (faster.kind, faster.words) == ("faster", "1.12 times as fast (95 % CI 1.11 to 1.14)")
    slower = comparison.compare([1.020, 1.021, 1.019], [1.0, 1.001, 0.999])
    assert slower.kind == "slower"
    assert slower.words == "takes 1.020 times as long (95 % CI 1.017 to 1.023)"
    same = comparison.compare([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    assert (same.kind, same.words) == ("no_difference", "no clear difference")
    assert (same.p_value, same.low, same.high) == (1.0, 1.0, 1.0)
    here = comparison.compare(*sides, where="here")
    assert here.words == "1.12 times as fast here (95 % CI 1.11 to 1.14)"
    lost = comparison.no_difference_among(11, faster.words)
    assert lost == f"no clear difference among 11 comparisons; alone: {faster.words}"


def test_the_interval_and_the_p_value_agree() -> None:
    """The interval holds 1 where the p-value is above 0.05, on both sides of the border."""
    base = [1.0, 1.01, 1.02]
    for step in range(200):
        verdict = comparison.compare([time * (1 + step / 2000) for time in base], base)
        assert verdict.p_value is not None
        assert (verdict.kind == "no_difference") == (verdict.p_value > comparison.SIGNIFICANCE)


def test_pairs_are_not_disturbed_by_what_meets_both() -> None:
    """A machine that doubles its pace every pair: Welch sees nothing, pairs see 10 %."""
    pace = [1.0, 2.0, 4.0, 8.0, 16.0]
    noise = [1.001, 0.999, 1.002, 0.998, 1.0]
    times = [p * e for p, e in zip(pace, noise, strict=True)]
    base = [1.1 * p for p in pace]
    assert comparison.compare(times, base).kind == "no_difference"
    assert comparison.compare_pairs(times, base).kind == "faster"


def processes(random: np.random.Generator, count: int, level: float) -> list[list[float]]:
    """Block times of processes: each process has its own pace, its blocks follow one another."""
    all_blocks = []
    for _ in range(count):
        pace = level * math.exp(random.normal(0, PROCESS_SPREAD))
        shocks = random.normal(0, BLOCK_SPREAD * math.sqrt(1 - CORRELATION**2), BLOCKS)
        drift, blocks = random.normal(0, BLOCK_SPREAD), []
        for shock in shocks:
            drift = CORRELATION * drift + shock
            blocks.append(pace * math.exp(drift))
        all_blocks.append(blocks)
    return all_blocks


def coverage(count: int, seed: int) -> dict[str, float]:
    """Share of simulated comparisons whose interval contains the true ratio."""
    random = np.random.default_rng(seed)
    held = {"welch": 0, "pairs": 0}
    for _ in range(DRAWS):
        a, b = (
            [median(blocks) for blocks in processes(random, count, level)]
            for level in (1.0, TRUE_RATIO)
        )
        for kind, verdict in (
            ("welch", comparison.compare(a, b)),
            ("pairs", comparison.compare_pairs(a, b)),
        ):
            held[kind] += verdict.low <= TRUE_RATIO <= verdict.high
    return {kind: hits / DRAWS for kind, hits in held.items()}


@pytest.mark.parametrize("count", [3, 5, 10])
def test_the_interval_over_processes_holds_the_truth_as_often_as_it_says(count: int) -> None:
    """Correlated blocks, 3 % between processes; 3,000 draws give a share to within 0.8 points."""
    for share in coverage(count, seed=count).values():
        assert 0.93 <= share <= 0.985


@pytest.mark.parametrize("slow", [0.0, 0.1])
@pytest.mark.parametrize("count", [3, 5, 10])
def test_a_slow_value_in_ten_gives_no_false_verdict(count: int, slow: float) -> None:
    """Equal sides, 3 % between values, and one value in ten 50 % slow: at most 5 % verdicts. Slow
    values widen the interval, so it then holds the truth more often than it says."""
    random = np.random.default_rng(count)
    shape = (DRAWS, 2, count)
    times = np.exp(random.normal(0, PROCESS_SPREAD, shape)) * np.where(
        random.random(shape) < slow, 1.5, 1.0
    )
    kinds = [comparison.compare(a, b).kind for a, b in times.tolist()]
    false = sum(kind != "no_difference" for kind in kinds) / DRAWS
    assert false <= 0.06


def test_among_twelve_equal_things_a_false_verdict_is_rare() -> None:
    """Eleven verdicts against one base, five values each: alone 20 % of pages have a false one,
    corrected at most 5 %."""
    random = np.random.default_rng(12)
    alone = corrected = 0
    for base, *others in np.exp(random.normal(0, PROCESS_SPREAD, (DRAWS, 12, 5))).tolist():
        p_values = [comparison.compare(times, base).p_value or 0.0 for times in others]
        alone += min(p_values) <= comparison.SIGNIFICANCE
        corrected += min(comparison.holm(p_values)) <= comparison.SIGNIFICANCE
    assert alone / DRAWS > 0.12
    assert corrected / DRAWS <= 0.05
