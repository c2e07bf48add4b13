"""Intervals and verdicts: computed by hand, and their coverage in simulations."""

import math
from statistics import median

import numpy as np
import pytest

from bench_protocol import comparison

PROCESS_SPREAD = 0.03
BLOCK_SPREAD = 0.02
BLOCKS = 20
CORRELATION = 0.7
TRUE_RATIO = 1.1
DRAWS = 1500


def test_welch_by_hand() -> None:
    # Logarithms 0, 0.1, 0.2 against 1, 1.1, 1.2: variances 0.01, 4 degrees of freedom, t 2.776445.
    low, high = comparison.log_ratio_interval(
        [math.exp(0.1 * n) for n in range(3)], [math.exp(1 + 0.1 * n) for n in range(3)]
    )
    margin = 2.776445 * math.sqrt(0.02 / 3)
    assert math.isclose(low, math.exp(-1 - margin), rel_tol=1e-6)
    assert math.isclose(high, math.exp(-1 + margin), rel_tol=1e-6)


def test_pairs_by_hand() -> None:
    """Logarithms 0.1, 0.2, 0.3: 2 degrees of freedom, t 4.302653."""
    base = [1.0, 20.0, 3.0]
    verdict = comparison.compare_pairs([b / math.exp(0.1 * n) for n, b in enumerate(base, 1)], base)
    margin = 4.302653 * 0.1 / math.sqrt(3)
    assert verdict.low is not None
    assert verdict.high is not None
    assert math.isclose(verdict.speed_up, math.exp(0.2))
    assert math.isclose(verdict.low, math.exp(0.2 - margin), rel_tol=1e-6)
    assert math.isclose(verdict.high, math.exp(0.2 + margin), rel_tol=1e-6)


def test_below_three_there_is_no_interval() -> None:
    verdict = comparison.compare([1.0, 1.0], [2.0] * 9)
    assert (verdict.kind, verdict.low, verdict.high, verdict.speed_up) == (
        "too_few_runs",
        None,
        None,
        2.0,
    )
    assert verdict.words == "too few runs (2 and 9 runs)"
    assert comparison.compare_pairs([1.0, 1.0], [2.0, 2.0]).words == "too few runs (2 pairs)"
    assert comparison.compare_pairs([1.0], [2.0]).words == "too few runs (1 pair)"


def test_words() -> None:
    faster = comparison.compare([100, 101, 99.5, 100.2], [112, 113, 111.5, 112.4])
    assert (faster.kind, faster.words) == ("faster", "12 % faster, 95 % CI 11 to 13")
    slower = comparison.compare([1.020, 1.021, 1.019], [1.0, 1.001, 0.999])
    assert (slower.kind, slower.words) == ("slower", "2.0 % slower, 95 % CI 1.7 to 2.2")
    same = comparison.compare([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    assert (same.kind, same.words) == ("no_difference", "no credible difference")


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


def medians(side: list[list[float]]) -> list[float]:
    return [median(blocks) for blocks in side]


def flat(side: list[list[float]]) -> list[float]:
    return [block for blocks in side for block in blocks]


def coverage(count: int, values: object, seed: int) -> dict[str, float]:
    """Share of simulated comparisons whose interval contains the true ratio."""
    random = np.random.default_rng(seed)
    held = {"welch": 0, "pairs": 0}
    for _ in range(DRAWS):
        a, b = (values(processes(random, count, level)) for level in (1.0, TRUE_RATIO))  # type: ignore[operator]
        for kind, verdict in (
            ("welch", comparison.compare(a, b)),
            ("pairs", comparison.compare_pairs(a, b)),
        ):
            assert verdict.low is not None
            assert verdict.high is not None
            held[kind] += verdict.low <= TRUE_RATIO <= verdict.high
    return {kind: hits / DRAWS for kind, hits in held.items()}


@pytest.mark.parametrize("count", [3, 5, 10])
def test_the_interval_over_processes_holds_the_truth_as_often_as_it_says(count: int) -> None:
    """Correlated blocks, 3 % between processes; 1,500 draws give a share to within 1.2 points."""
    for share in coverage(count, medians, seed=count).values():
        assert 0.90 <= share <= 0.98


@pytest.mark.parametrize("count", [3, 5, 10])
def test_an_interval_over_blocks_would_not(count: int) -> None:
    for share in coverage(count, flat, seed=count).values():
        assert share < 0.6
