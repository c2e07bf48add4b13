"""Checks on submission: challenge freshness and agreement of clocks."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from bench_protocol.payload.result import Measurement, Result

from .verdicts import CheckVerdict, Effect, EffectOf, Finding

CLOCKS_AGREE_SECONDS = 2.0
CLOCKS_AGREE_SHARE = 0.01
ARRIVES_WITHIN_SECONDS = 60.0


@dataclass(frozen=True)
class SubmissionFacts:
    """``challenge``: ``none`` named, ``fresh``, ``expired`` when it arrived, or ``foreign`` (not
    given by this server to this key). ``issued_at``: when a fresh one was given."""

    received_at: datetime
    challenge: Literal["none", "fresh", "expired", "foreign"] = "none"
    issued_at: datetime | None = None


def of_submission(result: Result, facts: SubmissionFacts) -> tuple[CheckVerdict, ...]:
    measured = result.measurement
    if measured is None:
        return ()
    return tuple(
        CheckVerdict.of(name, effect, check(result, measured, facts))
        for name, effect, check in CHECKS
    )


def _challenge(_result: Result, _measured: Measurement, facts: SubmissionFacts) -> Finding:
    sentence = {
        "none": "measured without a challenge, so it may have been measured at any time",
        "fresh": "bound to a challenge of this server",
        "expired": "its challenge had expired when it arrived",
        "foreign": "this server did not give this challenge to this key",
    }[facts.challenge]
    return Finding(facts.challenge == "fresh", sentence, {"challenge": facts.challenge})


def _clocks(result: Result, _measured: Measurement, facts: SubmissionFacts) -> Finding:
    """Monotonic, wall and server clock over the run so far, which began with the challenge.

    Compared only for what arrives within a minute of signing; sleep and waiting are no fraud.
    """
    clocks = result.clocks
    if facts.issued_at is None:
        return Finding(False, "clocks are only compared from a fresh challenge on", {})
    monotonic, at = clocks.signed_ns / 1e9, datetime.fromisoformat
    wall = (at(clocks.signed) - at(clocks.run_started)).total_seconds()
    server = (facts.received_at - facts.issued_at).total_seconds()
    tolerance = max(CLOCKS_AGREE_SECONDS, CLOCKS_AGREE_SHARE * monotonic)
    numbers = {"monotonic_seconds": monotonic, "wall_seconds": wall, "server_seconds": server}
    if abs(wall - monotonic) > tolerance:
        sentence = (
            f"since the run began its wall clock went on by {wall:,.1f} s, its monotonic clock "
            f"by {monotonic:,.1f} s: the machine slept, or its clock was set"
        )
    elif server < monotonic - tolerance:
        sentence = f"it claims {monotonic:,.1f} s since its challenge, the server saw {server:,.1f}"
    elif server > monotonic + tolerance + ARRIVES_WITHIN_SECONDS:
        late = server - monotonic
        sentence = f"it arrived {late:,.0f} s after it was signed, too late to compare clocks"
        numbers["late_seconds"] = late
    else:
        return Finding(True, f"all clocks agree over {monotonic:,.1f} s", numbers)
    return Finding(False, sentence, numbers)


def _clocks_effect(finding: Finding) -> Effect:
    """A result that waited in an outbox is only doubtful: it is fresh, and its own clocks agree."""
    return "doubtful" if "late_seconds" in finding.figures else "stale"


CHECKS: tuple[
    tuple[str, Effect | EffectOf, Callable[[Result, Measurement, SubmissionFacts], Finding]], ...
] = (
    ("challenge", "stale", _challenge),
    ("clocks", _clocks_effect, _clocks),
)
