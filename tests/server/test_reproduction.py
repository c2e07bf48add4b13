"""Reproduction: a simulation over fleets, and what one owner can do."""

import math
import random
from collections.abc import Sequence
from statistics import median_high

import pytest

from bench_server.ranking import reproduction
from bench_server.ranking.medians import LOG_SCALE, scaled_log
from bench_server.ranking.reproduction import Pairs

TAUS = (0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08)
OWNERS = (3, 4, 5, 6, 8, 12)
FLEETS = 40
SETUPS = 3
FAST = -math.log(reproduction.TOO_FAST)


def log(relative: float) -> int:
    return round(relative * LOG_SCALE)


def fleet(noise: random.Random, tau: float, owners: int) -> list[list[float]]:
    """Log times of owners in several set-ups; half of an owner's variance is the same in each."""
    common = [noise.gauss(0, tau * math.sqrt(0.5)) for _ in range(owners)]
    return [[own + noise.gauss(0, tau * math.sqrt(0.5)) for own in common] for _ in range(SETUPS)]


def total(setups: Sequence[Sequence[float]]) -> Pairs:
    pairs = [reproduction.pairs_of([log(time) for time in times]) for times in setups]
    return Pairs(
        sum(pair.squares for pair in pairs),
        sum(pair.degrees for pair in pairs),
        max(pair.most_degrees for pair in pairs),
    )


def verdict(setups: Sequence[Sequence[float]], shift: float) -> str:
    claimed = [[setups[0][0] + shift, *setups[0][1:]], *setups[1:]]
    tau = reproduction.tau_of(total(claimed))
    own, *others = map(log, claimed[0])
    return reproduction.judge(own, others, tau).verdict


def shares(taus: Sequence[float] = TAUS) -> tuple[float, float, float, float]:
    """Of honest results with an answer the share that passes; of claims 20 % too fast with one the
    share that passes, and that of all; of honest results the share with an answer."""
    noise = random.Random(16)
    fleets = [fleet(noise, tau, owners) for tau in taus for owners in OWNERS for _ in range(FLEETS)]
    honest, fast = ([verdict(setups, shift) for setups in fleets] for shift in (0.0, FAST))
    told = [one for one in honest if one != "undecided"]
    passed = fast.count("reproduced")
    return (
        told.count("reproduced") / len(told),
        passed / (len(fast) - fast.count("undecided")),
        passed / len(fast),
        len(told) / len(fleets),
    )


def test_honest_results_pass_and_claims_that_are_too_fast_do_not() -> None:
    honest, fast, _, told = shares()
    assert honest >= 0.95
    assert fast <= 0.10
    assert told > 0.5


@pytest.mark.parametrize("tau", TAUS)
def test_claims_that_are_too_fast_pass_at_no_spread(tau: float) -> None:
    _, _, fast, told = shares([tau])
    assert fast <= 0.10
    assert told > 0.9 if tau <= 0.03 else told < 0.4 if tau >= 0.08 else True


def test_tau_is_four_percent_without_owners_and_the_measured_one_with_many() -> None:
    assert reproduction.tau_of(Pairs()) == reproduction.PRIOR_TAU
    noise = random.Random(1)
    for tau in (0.02, 0.06):
        times = [log(noise.gauss(0, tau)) for _ in range(300)]
        assert reproduction.tau_of(reproduction.pairs_of(times)) == pytest.approx(tau, abs=0.006)


@pytest.mark.parametrize(
    ("tau", "needed"), [(0.02, 2), (0.04, 2), (0.045, 2), (0.05, 4), (0.055, 22), (0.06, None)]
)
def test_owners_needed(tau: float, needed: int | None) -> None:
    found = reproduction.judge(0, [0], tau)
    assert found.verdict == "undecided"
    assert found.owners_needed == (None if needed is None else needed - 1)
    if needed is None:
        assert found.sentence == (
            "no verdict: owners differ by 6.0 %, so a claim that is 20 % too fast would pass; "
            "it takes owners who differ by 5.5 % or less"
        )
        assert reproduction.judge(0, [0] * 50, reproduction.LARGEST_TAU).owners_needed == 0
        assert reproduction.judge(0, [0] * 50, tau).verdict == "undecided"
    else:
        more = "1 more confirmed owner" if needed == 2 else f"{needed - 1} more confirmed owners"
        assert found.sentence == f"no verdict yet: {more} must measure this set-up on this hardware"
        assert reproduction.judge(0, [0] * needed, tau).verdict == "reproduced"
        assert reproduction.judge(0, [0] * (needed - 1), tau).verdict == "undecided"


def test_two_owners_who_disagree_need_a_third() -> None:
    found = reproduction.judge(0, [log(-0.1), log(0.1)], 0.04)
    assert found.owners_needed == 1
    assert found.sentence == (
        "no verdict yet: the two others disagree; "
        "1 more confirmed owner must measure this set-up on this hardware"
    )


def test_a_window_is_the_prediction_interval_of_one_more_owner() -> None:
    found = reproduction.judge(log(0.05), [log(-0.01), log(0.01)], 0.04)
    assert found.window == pytest.approx(1.96 * 0.04 * math.sqrt(1.5), rel=1e-4)
    assert found.difference == pytest.approx(0.05)
    assert (found.verdict, found.owners, found.owners_needed) == ("reproduced", 2, 0)
    assert reproduction.judge(log(-0.1), [0, 0], 0.04).verdict == "not_reproduced"


@pytest.mark.parametrize("wild", [-0.5, 0.5])
def test_one_wild_owner_decides_nothing(wild: float) -> None:
    """Neither the mean of three or more others nor the spread of five or more follows it."""
    assert reproduction.judge(0, [0, 0, log(wild)], 0.04).verdict == "reproduced"
    assert reproduction.judge(log(wild), [0, 0, log(wild)], 0.04).verdict == "not_reproduced"
    # Nothing says which of two is right.
    two = reproduction.judge(0, [0, log(wild)], 0.04)
    assert (two.verdict, two.owners_needed) == ("undecided", 1)
    noise = random.Random(2)
    times = [log(noise.gauss(0, 0.03)) for _ in range(8)]
    for count in (3, 5, 8):
        calm = reproduction.tau_of(reproduction.pairs_of(times[:count]))
        more = reproduction.tau_of(reproduction.pairs_of([*times[:count], log(wild)]))
        assert more <= calm + 0.01


def test_nothing_depends_on_the_order_of_owners() -> None:
    noise = random.Random(3)
    times = [scaled_log(100 * noise.gauss(1, 0.05)) for _ in range(9)]
    shuffled = noise.sample(times, len(times))
    assert reproduction.pairs_of(times) == reproduction.pairs_of(shuffled)
    assert reproduction.judge(median_high(times), times, 0.04) == reproduction.judge(
        median_high(times), shuffled, 0.04
    )
