"""Reproduction: whether a time agrees with the times that other owners measured.

The spread between owners, tau, is the standard deviation of owners' log times in one set-up. It is
estimated for each hardware and framework, from the differences of pairs of owners in each of its
set-ups, and shrunk to 4 %, which counts as much as five owners (a normal prior's conjugate form:
Gelman et al., Bayesian Data Analysis, 2013, section 2.6). A time agrees if it is within the
95 % prediction interval of one more owner around the mean of the others. The verdict is given only
where that interval is narrow enough to refuse a claim that is 20 % too fast.

No single owner decides. An owner who is more than 20 % from the median of three or more is not in
the spread, and the difference of two counts as 20 % at most. Of five or more owners the fastest
counts as the second fastest in the spread, and the slowest as the second slowest (winsorising:
Tukey and McLaughlin 1963); in the mean of others, of three or more. All sums are of integers, so
that they depend on no order.
"""

import math
from collections.abc import Iterable, Sequence
from statistics import median_high
from typing import Literal, NamedTuple

from bench_protocol.base import format as people

from .medians import LOG_SCALE

# The spread between owners without any measurement, and the owners' differences it counts for.
PRIOR_TAU = 0.04
PRIOR_DEGREES = 4
# Tau is rounded up to a multiple of this share, so that a new result rarely changes the verdicts of
# other set-ups.
TAU_STEP = 0.005
# The claim to be refused: this rate over the true one, passing in at most this share of cases.
TOO_FAST = 1.2
# Standard normal quantiles: two-sided 5 %, and one-sided 10 %.
TWO_SIDED = 1.959964
ONE_SIDED = 1.281552
# One other owner would decide alone.
LEAST_OTHERS = 2
WINSORISED_FROM = 5
LOG_TOO_FAST = math.log(TOO_FAST)
# The largest standard deviation of a difference at which the claim is refused often enough.
LARGEST_DEVIATION = LOG_TOO_FAST / (TWO_SIDED + ONE_SIDED)
# The largest tau at which a number of owners is enough.
LARGEST_TAU = TAU_STEP * math.floor(LARGEST_DEVIATION / TAU_STEP)

Verdict = Literal["reproduced", "not_reproduced", "undecided"]


class Pairs(NamedTuple):
    """Differences of the owners of one set-up, or sums over several set-ups.

    ``squares``: sum of the squared differences of pairs over the number of owners, in
    1/``LOG_SCALE`` squared; ``degrees``: of freedom; ``most_degrees``: of the set-up with most.
    """

    squares: int = 0
    degrees: int = 0
    most_degrees: int = 0


class Reproduction(NamedTuple):
    """Whether other owners measured about this time.

    ``tau``: the spread between owners, ``window``: the largest difference that agrees and
    ``difference``: that of this time from the mean of the ``owners`` others; all in log times,
    about the relative difference. ``difference`` is None without others. ``owners_needed``: how
    many more owners a verdict takes at this tau; 0 where there is one, None where no number is
    enough.
    """

    verdict: Verdict
    tau: float
    window: float
    difference: float | None
    owners: int
    owners_needed: int | None

    @property
    def sentence(self) -> str:
        """The verdict for people; if there is none, what it takes."""
        if self.verdict == "undecided" and self.owners_needed is None:
            return (
                f"no verdict: owners differ by {people.percent(self.tau)}, so a claim that is 20 % "
                f"too fast would pass; it takes owners who differ by {people.percent(LARGEST_TAU)} "
                "or less"
            )
        if self.verdict == "undecided":
            more = f"{self.owners_needed} more confirmed owner{'s' * (self.owners_needed != 1)}"
            disagree = self.owners >= (_owners_needed(self.tau) or 0)
            why = "the two others disagree; " if disagree else ""
            return f"no verdict yet: {why}{more} must measure this set-up on this hardware"
        relation = "within" if self.verdict == "reproduced" else "outside"
        return f"{relation} {people.percent(self.window)} of the mean of {self.owners} other owners"


def pairs_of(logs: Sequence[int]) -> Pairs:
    """The differences of the owners of one set-up, from a :func:`.medians.scaled_log` of each."""
    most = round(LOG_TOO_FAST * LOG_SCALE)
    if len(logs) > 2:
        middle = median_high(logs)
        logs = [log for log in logs if abs(log - middle) <= most]
    count = len(logs)
    if count < 2:
        return Pairs()
    robust = count >= WINSORISED_FROM
    ordered = _winsorised(logs) if robust else sorted(logs)
    squares = sum(
        min(high - low, most) ** 2 for at, low in enumerate(ordered) for high in ordered[at + 1 :]
    )
    # Simulated: the winsorised sum is that of n - 4 degrees within 2 % from eight owners on, and
    # larger with fewer.
    degrees = count - 4 if robust else count - 1
    return Pairs(squares // count, degrees, degrees)


def tau_of(pairs: Pairs) -> float:
    """The spread between owners, a multiple of ``TAU_STEP``.

    An owner's differences in several set-ups have causes in common, so ``degrees`` of all set-ups
    make the mean square, and those of one set-up its weight against the prior.
    """
    weight = pairs.most_degrees
    measured = pairs.squares / (pairs.degrees * LOG_SCALE**2) if pairs.degrees else 0.0
    total = weight * measured + PRIOR_DEGREES * PRIOR_TAU**2
    tau = math.sqrt(total / (weight + PRIOR_DEGREES))
    return round(math.ceil(tau / TAU_STEP - 1e-9) * TAU_STEP, 3)


def judge(log_time: int, others: Sequence[int], tau: float) -> Reproduction:
    """Compare a log time with one of each other confirmed owner, at a spread between owners."""
    owners = len(others)
    difference = None
    if others:
        difference = (log_time - _mean(others)) / LOG_SCALE
    window = TWO_SIDED * tau * math.sqrt(1 + 1 / max(owners, LEAST_OTHERS))
    needed = _owners_needed(tau)
    more = None if needed is None else max(0, needed - owners)
    if more == 0 and owners == 2 and _disagree(others, tau):
        more = 1  # nothing says which of the two is right
    if more != 0 or difference is None:
        return Reproduction("undecided", tau, window, difference, owners, more)
    verdict: Verdict = "reproduced" if abs(difference) <= window else "not_reproduced"
    return Reproduction(verdict, tau, window, difference, owners, 0)


def _owners_needed(tau: float) -> int | None:
    """The number of other owners at which a claim that is too fast is refused often enough."""
    room = (LARGEST_DEVIATION / tau) ** 2 - 1
    return max(LEAST_OTHERS, math.ceil(1 / room)) if room > 0 else None


def _disagree(two: Sequence[int], tau: float) -> bool:
    return abs(two[0] - two[1]) > TWO_SIDED * tau * math.sqrt(2) * LOG_SCALE


def _mean(logs: Sequence[int]) -> float:
    counted = _winsorised(logs) if len(logs) > 2 else logs
    return sum(counted) / len(counted)


def _winsorised(logs: Iterable[int]) -> list[int]:
    """Three or more values in order, the first and the last one replaced by their neighbours."""
    inner = sorted(logs)[1:-1]
    return [inner[0], *inner, inner[-1]]
