"""Check the server: whether it answers, and whether both clocks agree."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from .finding import Finding

# The Date header has whole seconds, and an answer takes time.
CLOSE_SECONDS = 5.0
# A challenge is valid for minutes; a clock this far off cannot answer one.
FAR_SECONDS = 120.0


@dataclass(frozen=True)
class ServerAnswer:
    """``problem``: why there is no answer. ``offset_seconds``: this clock minus the server's."""

    url: str
    status: int | None = None
    offset_seconds: float | None = None
    problem: str | None = None


def check_server(answer: ServerAnswer | None) -> Iterator[Finding]:
    """Check that the server answers. No server is fine: nothing is sent."""
    if answer is None:
        yield Finding("server", "skip", "no server was named; nothing is sent")
        return
    later = f"bench-agent submit --server {shlex.quote(answer.url)}"
    if answer.problem:
        sentence = (
            f"{answer.url} does not answer ({answer.problem}); results stay in the outbox, to be "
            "sent later"
        )
        yield Finding("server", "fail", sentence, later)
    elif answer.status != 200:
        sentence = f"{answer.url} answers {answer.status}: not a Trainmark server, or a broken one"
        yield Finding("server", "fail", sentence, "correct the address of --server")
    else:
        yield Finding("server", "ok", f"{answer.url} answers")


def check_clock(answer: ServerAnswer | None, system: str) -> Iterator[Finding]:
    """Check this clock. Results are bound to a challenge by time: a wrong clock lowers their trust
    level."""
    if answer is None or answer.offset_seconds is None:
        yield Finding("clock", "skip", "no server's clock to compare with")
        return
    offset = answer.offset_seconds
    difference = (
        f"this clock is {abs(offset):.0f} s {'ahead of' if offset > 0 else 'behind'} the server's"
    )
    hint = "sudo timedatectl set-ntp true"
    if system == "Darwin":
        hint = "sudo sntp -sS time.apple.com"
    if abs(offset) > FAR_SECONDS:
        yield Finding("clock", "fail", difference, hint)
    elif abs(offset) > CLOSE_SECONDS:
        yield Finding("clock", "warn", difference, hint)
    else:
        yield Finding("clock", "ok", "this clock agrees with the server's")


def offset_seconds(date: str | None, before: datetime, after: datetime) -> float | None:
    """Seconds that this clock is ahead of a Date header; None for an unreadable one.

    Args:
        before, after: this clock when the request was sent and when its answer came.
    """
    try:
        theirs = parsedate_to_datetime(date or "")
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    if theirs.tzinfo is None:
        theirs = theirs.replace(tzinfo=UTC)
    middle = before + (after - before) / 2
    # The header was cut to whole seconds: half a second on average.
    return (middle - theirs).total_seconds() - 0.5
