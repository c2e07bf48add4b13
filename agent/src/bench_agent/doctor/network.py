"""Check the server: whether it answers, and whether both clocks agree."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from ..base.errors import UsageProblem
from ..machine.text import text_or_none
from ..remote.connection import trusted
from .finding import Finding, fail, ok, skip, warn

TIMEOUT_SECONDS = 10.0
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


def ask_server(url: str) -> ServerAnswer:
    """Send one request, and compute the difference of the clocks."""
    before = datetime.now(UTC)
    try:
        answer = httpx.get(f"{url.rstrip('/')}/healthz", timeout=TIMEOUT_SECONDS, verify=trusted())
    except (httpx.HTTPError, httpx.InvalidURL, UsageProblem) as error:
        return ServerAnswer(url, problem=text_or_none(str(error)) or type(error).__name__)
    offset = offset_seconds(answer.headers.get("Date"), before, datetime.now(UTC))
    return ServerAnswer(url, status=answer.status_code, offset_seconds=offset)


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


def check_server(answer: ServerAnswer | None) -> Iterator[Finding]:
    """Check that the server answers. No server is fine: nothing is sent."""
    if answer is None:
        yield skip("no server was named; nothing is sent")
    elif answer.problem:
        kept = "results stay in the outbox, to be sent later"
        later = f"bench-agent submit --server {shlex.quote(answer.url)}"
        yield fail(f"{answer.url} does not answer ({answer.problem}); {kept}", later)
    elif answer.status != 200:
        what = "not a Trainmark server, or a broken one"
        hint = "correct the address of --server"
        yield fail(f"{answer.url} answers {answer.status}: {what}", hint)
    else:
        yield ok(f"{answer.url} answers")


def check_clock(answer: ServerAnswer | None, system: str) -> Iterator[Finding]:
    """Check this clock. Results are bound to a challenge by time: a wrong clock lowers their trust
    level."""
    if answer is None or answer.offset_seconds is None:
        yield skip("no server's clock to compare with")
        return
    offset = answer.offset_seconds
    direction = "ahead of" if offset > 0 else "behind"
    sentence = f"this clock is {abs(offset):.0f} s {direction} the server's"
    mac = system == "Darwin"
    hint = "sudo sntp -sS time.apple.com" if mac else "sudo timedatectl set-ntp true"
    if abs(offset) > FAR_SECONDS:
        yield fail(sentence, hint)
    elif abs(offset) > CLOSE_SECONDS:
        yield warn(sentence, hint)
    else:
        yield ok("this clock agrees with the server's")
