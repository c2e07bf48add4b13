"""Intervals and verdicts: by hand, in simulations, and quantiles compared with SciPy."""

import math
from collections.abc import Callable
from statistics import median

import numpy as np
import pytest
from scipy.special import stdtr, stdtrit

from bench_protocol.statistics import comparison, student_t

PROCESS_SPREAD = 0.03
BLOCK_SPREAD = 0.02
BLOCKS = 20
CORRELATION = 0.7
TRUE_RATIO = 1.1
DRAWS = 3000
FEW_DRAWS = 600

Draw = Callable[[np.random.Generator, int], "np.ndarray[tuple[int], np.dtype[np.float64]]"]


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
    """One slow value of three moves no median; a geometric mean would say 11 % slower."""
    verdict = comparison.compare([1, 1.01, 1.5], [1.02, 1.03, 1.01])
    assert verdict.speed_up == 1.02 / 1.01
    assert verdict.low < (1.02 * 1.03 / 1.5) ** (1 / 3) < 1 < verdict.speed_up < verdict.high
    low, high = comparison.figure_interval(1.01, comparison.LogSample.of([1, 1.01, 1.5]))
    assert math.isclose(low * high, 1.01**2)


@pytest.mark.parametrize("size", [3, 4, 5, 6, 10, 11, 30])
def test_the_variance_of_a_median_against_that_of_a_mean(size: int) -> None:
    samples = np.random.default_rng(size).normal(size=(100_000, size))
    factor = np.sort(samples, axis=1)[:, size // 2].var() * size
    assert math.isclose(comparison.median_factor(size), factor, rel_tol=0.04)


def test_the_median_of_two_was_measured() -> None:
    assert comparison.compare([1, 3], [10, 12]).speed_up == 4


def test_holm_by_hand() -> None:
    """Each p-value times the number of those not yet rejected, never below the one before."""
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
    assert verdict.words == "no verdict yet: 2 and 9 runs, needs 3 a side"
    for count in (1, 2):
        pairs = comparison.compare_pairs([1.0] * count, [2.0] * count)
        assert pairs.words == f"no verdict yet: {count} pair{'s' * (count > 1)}, needs 3"


def test_words() -> None:
    sides = [100, 101, 99.5, 100.2], [112, 113, 111.5, 112.4]
    faster = comparison.compare(*sides)
    assert (faster.kind, faster.words) == ("faster", "1.12 times as fast (95 % CI 1.11 to 1.14)")
    slower = comparison.compare([1.020, 1.021, 1.019], [1.0, 1.001, 0.999])
    assert (slower.kind, slower.words) == ("slower", "2 % slower (95 % CI 1.7 to 2.2 % slower)")
    same = comparison.compare([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    assert (same.kind, same.words) == ("no_difference", "no clear difference")
    assert (same.p_value, same.low, same.high) == (1.0, 1.0, 1.0)
    here = comparison.compare(*sides, where="here")
    assert here.words == "1.12 times as fast here (95 % CI 1.11 to 1.14)"
    lost = comparison.no_difference_among(11, faster.words)
    assert lost == f"no clear difference among 11 comparisons; alone: {faster.words}"


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


def two_levels(gap: float, share: float) -> Draw:
    return lambda random, n: random.normal(0, 0.01, n) + gap * (random.random(n) < share)


DRAW: dict[str, Draw] = {
    "normal": lambda random, n: random.normal(0, PROCESS_SPREAD, n),
    "exponential": lambda random, n: PROCESS_SPREAD * random.exponential(size=n),
    "one in ten slow": lambda random, n: (
        random.normal(0, PROCESS_SPREAD, n) + math.log(1.5) * (random.random(n) < 0.1)
    ),
    "10 %, half": two_levels(0.1, 0.5),
    "10 %, 30 %": two_levels(0.1, 0.3),
    "5 %, half": two_levels(0.05, 0.5),
    "3 %, half": two_levels(0.03, 0.5),
}


@pytest.mark.parametrize("sides", [(3, 3), (5, 5), (9, 10), (20, 20), (4, 9), (3, 30)])
@pytest.mark.parametrize("values", DRAW)
def test_equal_sides_rarely_have_a_verdict(values: str, sides: tuple[int, int]) -> None:
    """At most 5 %, up to 5.7 % of two levels (10,000 draws); of medians alone up to 49 %, of means
    with Welch's error 30 %. The interval holds 1 exactly where there is no verdict."""
    random = np.random.default_rng(sum(sides))
    false = np.zeros(2)
    for _ in range(FEW_DRAWS):
        a, b = (np.exp(DRAW[values](random, n)).tolist() for n in sides)
        least = min(sides)
        found = comparison.compare(a, b), comparison.compare_pairs(a[:least], b[:least])
        for one in found:
            clear = one.p_value <= comparison.SIGNIFICANCE
            assert clear == (not one.low <= 1 <= one.high) == (one.kind != "no_difference")
        false += [one.kind != "no_difference" for one in found]
    assert max(false) / FEW_DRAWS <= 0.08


@pytest.mark.parametrize(("count", "shift"), [(3, 0.15), (5, 0.08), (10, 0.05)])
def test_a_difference_of_normal_values_is_found(count: int, shift: float) -> None:
    """In 91, 84 and 81 % of cases; of medians alone in 91, 85 and 82 % (10,000 draws)."""
    random = np.random.default_rng(count)
    times = np.exp(random.normal(0, PROCESS_SPREAD, (FEW_DRAWS, 2, count)))
    times[:, 1] *= math.exp(shift)
    kinds = [comparison.compare(a, b).kind for a, b in times.tolist()]
    assert kinds.count("faster") / FEW_DRAWS >= 0.77


def test_among_twelve_equal_things_a_false_verdict_is_rare() -> None:
    """Five values each: alone 20 % of pages have a false verdict, corrected at most 5 %."""
    random = np.random.default_rng(12)
    alone = corrected = 0
    for base, *others in np.exp(random.normal(0, PROCESS_SPREAD, (FEW_DRAWS, 12, 5))).tolist():
        p_values = [comparison.compare(times, base).p_value or 0.0 for times in others]
        alone += min(p_values) <= comparison.SIGNIFICANCE
        corrected += min(comparison.holm(p_values)) <= comparison.SIGNIFICANCE
    assert alone / FEW_DRAWS > 0.12
    assert corrected / FEW_DRAWS <= 0.05


FREEDOM = (1, 1.0001, 1.3, 2, 2.5, 3, 4, 5, 7.3, 10, 20, 50, 99.5, 200, 299.9, 300, 1000, 1e4, 1e8)
CONFIDENCE = (0.001, 0.01, 0.1, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 0.9999)


@pytest.mark.parametrize("freedom", FREEDOM)
def test_as_scipy(freedom: float) -> None:
    for confidence in CONFIDENCE:
        expected = float(stdtrit(freedom, (1 + confidence) / 2))
        assert math.isclose(student_t.quantile(freedom, confidence), expected, rel_tol=1e-10)


@pytest.mark.parametrize("freedom", FREEDOM[:-1])
def test_tails_as_scipy(freedom: float) -> None:
    for t in (0, 1e-9, 0.1, 0.7, 1, 2, 3.3, 10, 1e3, 1e9):
        expected = 2 * float(stdtr(freedom, -t))
        assert math.isclose(student_t.tails(freedom, t), expected, rel_tol=1e-7, abs_tol=1e-8)
