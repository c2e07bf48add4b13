"""Eligibility: whether a result is ranked, and its trust level from 1 to 3. Computed, never sent.

Whether it is ranked follows from its checks, its moderation and its key, its level from the checks
alone. Level 1 is not ranked: such a result may have been measured at any time. A disturbed result
is ranked; :func:`..ranking.medians.counting` leaves it out of a figure while others count.
:mod:`..checks.table` defines the effect of each failed check, :mod:`.reproduced` level 4.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ..checks.verdicts import CheckVerdict

# The reason that a moderated result is not ranked, by its moderation state.
MODERATED = {
    "flagged": "flagged by the operator",
    "quarantined": "held back by the operator for review",
    "hidden": "hidden by its sender",
}


class Moderation(NamedTuple):
    """The state of a result after its newest act, and the reason that the act gives."""

    state: str | None = None
    reason: str | None = None


class Revocation(NamedTuple):
    """The log index from which the results of a key do not count, and why; None for an intact
    key."""

    compromised_since: int | None = None
    reason: str | None = None


class Eligibility(NamedTuple):
    """Whether a result is ranked, why not, and its trust level."""

    rankable: bool
    unranked_reason: str | None
    trust_level: int


def eligibility(
    verdicts: Sequence[CheckVerdict],
    log_index: int,
    *,
    failure: str | None = None,
    moderation: Moderation = Moderation(),
    revocation: Revocation = Revocation(),
) -> Eligibility:
    """``verdicts``: of all checks, empty after a ``failure``: why nothing was measured."""
    reason = failure or _unranked_reason(verdicts, log_index, moderation, revocation)
    return Eligibility(reason is None, reason, _level(verdicts, failure))


def _unranked_reason(
    verdicts: Sequence[CheckVerdict], log_index: int, moderation: Moderation, revocation: Revocation
) -> str | None:
    if moderation.state in MODERATED:
        reason = f": {moderation.reason}" if moderation.reason else ""
        return MODERATED[moderation.state] + reason
    since = revocation.compromised_since
    if since is not None and log_index >= since:
        return (
            f"its key was revoked ({revocation.reason}), and what was logged from entry {since} on "
            "does not count"
        )
    failed = [verdict for verdict in verdicts if not verdict.passed]
    for verdict in failed:
        if verdict.effect == "unranked":
            return verdict.sentence
    for verdict in failed:
        if verdict.effect == "quarantined" and moderation.state != "restored":
            return f"held back for review: {verdict.sentence}"
    for verdict in failed:
        if verdict.effect == "stale":
            return f"trust level 1: {verdict.sentence}"
    return None


def _level(verdicts: Sequence[CheckVerdict], failure: str | None) -> int:
    failed = {verdict.effect for verdict in verdicts if not verdict.passed}
    if not verdicts or "stale" in failed:
        return 1
    return 2 if failed or failure is not None else 3
