"""What a result shows and what it does not: claims that follow from its verdicts.

The page of a result, the API and ``bench-agent verify`` show the same list. A new kind of evidence
is one row of ``ROWS``; the page ``/trust`` explains each row under its name.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from ..catalogue.matrix import DeviceKind, Precision
from ..payload.result import Result
from . import trust_levels
from .omissions import DAYS, Omissions
from .trust_levels import HIGHEST, LEVELS, Assurance, not_checkable

Status = Literal["holds", "does_not_hold", "not_checked", "pending"]
STATUS_WORDS: dict[Status, str] = {
    "holds": "holds",
    "does_not_hold": "does not hold",
    "not_checked": "not checked",
    "pending": "pending",
}
# The verdict of a witness that only a wide range was compared with.
WIDE_RANGE = "wide_range"
# Verdicts of a check that compared nothing (docs/protocol.md, Checks). A window that is shorter
# than its blocks bounds nothing.
NOT_COMPARED = ("unverified", "not_drawn", "self_seeded", "shorter")
NOT_PROJECTED = "its checks run when the boards reach its log entry"


class Check(NamedTuple):
    """The verdict of one check, as the API shows it. ``verdict``: of its figures, None if none."""

    passed: bool
    checked: bool
    sentence: str
    verdict: str | None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Check":
        figures = document["figures"]
        verdict = figures.get("verdict") if isinstance(figures, Mapping) else None
        return cls(
            bool(document["passed"]), bool(document["checked"]), str(document["sentence"]), verdict
        )

    @property
    def status(self) -> Status:
        """The status of this check. One that compared nothing, or only a wide range, is no pass."""
        if self.verdict == "pending":
            return "pending"
        if not self.checked or self.verdict in (*NOT_COMPARED, WIDE_RANGE):
            return "not_checked"
        return "holds" if self.passed else "does_not_hold"


@dataclass(frozen=True)
class Facts:
    """The facts that claims follow from.

    ``status``: ``measured``, ``failed``, ``pending`` until the result is projected, or ``unknown``
    where no server was asked. ``checks``: verdicts by name. ``logged``: a log holds it.
    ``omissions``: None where no server was asked.
    """

    status: str
    trust_level: int | None
    device: DeviceKind
    precision: Precision
    verdicts: tuple[Mapping[str, Any], ...] = ()
    logged: bool = True
    omissions: Omissions | None = None

    @cached_property
    def checks(self) -> dict[str, Check]:
        """Verdicts by the name of their check."""
        return {str(one["check"]): Check.of(one) for one in self.verdicts}

    @property
    def has_wide_range(self) -> bool:
        """Whether only a wide range was compared with the losses of its session."""
        witness = self.checks.get("witness")
        return witness is not None and witness.verdict == WIDE_RANGE


def facts_of(
    result: Result,
    status: str,
    trust_level: int | None = None,
    verdicts: Iterable[Mapping[str, Any]] = (),
    *,
    logged: bool = True,
    omissions: Omissions | None = None,
) -> Facts:
    """The facts of a result."""
    return Facts(
        status,
        trust_level,
        result.cell.device.kind,
        result.cell.precision,
        tuple(verdicts),
        logged,
        omissions,
    )


class Finding(NamedTuple):
    status: Status
    sentence: str
    assurance: Assurance | None = None


NOTHING_MEASURED = Finding("not_checked", "nothing was measured")


@dataclass(frozen=True)
class Claim:
    """One claim about a result. ``what``: its name, which is also its anchor on the page
    ``/trust`` (``section``); ``assurance``: whose word it is, where it holds."""

    what: str
    title: str
    status: Status
    assurance: Assurance | None
    sentence: str
    section: str


@dataclass(frozen=True)
class Row:
    """A kind of claim: ``shows`` and ``does_not``, what it shows and does not show where it
    holds; ``checks``, the checks it follows from."""

    what: str
    title: str
    shows: str
    does_not: str
    checks: tuple[str, ...]
    judge: Callable[[Facts, "Row"], Finding]

    @property
    def section(self) -> str:
        return f"/trust#{self.what}"


def of(facts: Facts) -> tuple[Claim, ...]:
    """The claims about a result, in the order of :data:`ROWS`."""
    claims = []
    for row in ROWS:
        status, sentence, assurance = row.judge(facts, row)
        claims.append(Claim(row.what, row.title, status, assurance, sentence, row.section))
    return tuple(claims)


def level_words(facts: Facts) -> str | None:
    """A result's trust level in words; None before it has one."""
    if facts.trust_level is None:
        return None
    return trust_levels.words(
        facts.trust_level, facts.device, facts.precision, facts.has_wide_range
    )


def level_needs(facts: Facts) -> str | None:
    """The needs of the next trust level; None at the highest one and without a level."""
    level = facts.trust_level
    if level is None or level >= HIGHEST or facts.status == "failed":
        return None
    if level == HIGHEST - 1:
        return f"level {HIGHEST}: {_lower(LEVELS[HIGHEST].needs)}"
    failed = [check for check in facts.checks.values() if not check.passed]
    if level == 2 and (why := not_checkable(facts.device, facts.precision)):
        return f"level 3 is {why}: limits that follow from its precision are too coarse"
    if level == 2 and any(check.verdict == "pending" for check in failed):
        return "level 3: the server has not recomputed it yet"
    names = ("challenge", "clocks") if level == 1 else tuple(facts.checks)
    found = [facts.checks[name] for name in names if name in facts.checks]
    missing = dict.fromkeys(check.sentence for check in found if not check.passed)
    return f"level {level + 1}: {'; '.join(missing)}" if missing else None


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")


def _signature(_: Facts, row: Row) -> Finding:
    return Finding("holds", row.shows, "self_attested")


def _log(facts: Facts, row: Row) -> Finding:
    if not facts.logged:
        return Finding("not_checked", "it is in no log yet")
    return Finding("holds", row.shows, "third_party")


def _by_checks(assurance: Assurance) -> Callable[[Facts, Row], Finding]:
    """The row holds if its checks pass and one of them had something to compare with."""

    def judge(facts: Facts, row: Row) -> Finding:
        if (unknown := _no_verdicts(facts)) is not None:
            return unknown
        found = [facts.checks[name] for name in row.checks if name in facts.checks]
        failed = [check for check in found if not check.passed]
        wrong = [check for check in failed if check.verdict not in (*NOT_COMPARED, "pending")]
        if wrong:
            return Finding("does_not_hold", wrong[0].sentence)
        if failed:
            pending = [check for check in failed if check.verdict == "pending"]
            first, *_ = pending or failed
            return Finding("pending" if pending else "not_checked", first.sentence)
        if not any(check.checked for check in found):
            return Finding("not_checked", found[0].sentence if found else "there is no such check")
        return Finding("holds", row.shows, assurance)

    return judge


def _session(facts: Facts, row: Row) -> Finding:
    found = _by_checks("third_party")(facts, row)
    if found.status != "holds":
        return found
    if facts.has_wide_range:
        return Finding("not_checked", facts.checks["witness"].sentence)
    return found._replace(sentence=f"{found.sentence}; {facts.checks['pace'].sentence}")


def _claimed(why: str) -> Callable[[Facts, Row], Finding]:
    """What only the sender says: its checks can contradict it, and cannot confirm it."""

    def judge(facts: Facts, row: Row) -> Finding:
        found = _by_checks("self_attested")(facts, row)
        settled = found.status != "holds" and (row.checks or found == NOTHING_MEASURED)
        return found if settled else Finding("not_checked", why)

    return judge


def _selection(facts: Facts, row: Row) -> Finding:
    if facts.omissions is None:
        return Finding("not_checked", "the server counts that, and was not asked")
    if facts.omissions.words:
        status: Status = "does_not_hold" if facts.omissions.chosen else "not_checked"
        return Finding(status, facts.omissions.words)
    return Finding("holds", row.shows, "third_party")


def _reproduced(facts: Facts, row: Row) -> Finding:
    if (unknown := _no_verdicts(facts)) is not None:
        return unknown
    if facts.trust_level == HIGHEST:
        return Finding("holds", row.shows, "reproduced")
    if facts.trust_level == HIGHEST - 1:
        return Finding("not_checked", "too few confirmed owners measured a similar speed")
    return Finding("not_checked", "it needs trust level 3 first")


def _no_verdicts(facts: Facts) -> Finding | None:
    """The finding where the result has no verdicts."""
    if facts.checks:
        return None
    if facts.status == "pending":
        return Finding("pending", NOT_PROJECTED)
    if facts.status == "unknown":
        return Finding("not_checked", "the server has the verdicts, and was not asked")
    return NOTHING_MEASURED


ROWS = (
    Row(
        "signature",
        "Sent by this key, unaltered",
        "this key signed it, and nothing was changed",
        "whose key that is, or that its figures are true",
        (),
        _signature,
    ),
    Row(
        "log",
        "Logged",
        "it is in the public log: nobody can change or remove it unseen",
        "that it is true",
        (),
        _log,
    ),
    Row(
        "fresh",
        "Measured under a fresh challenge",
        "it was measured after the server's challenge, and its clocks agree",
        "how much of the time since then was spent on measuring",
        ("challenge", "clocks"),
        _by_checks("third_party"),
    ),
    Row(
        "session",
        "The timed session trained this job",
        "after its timing it trained parts of the job that the server chose, and the server "
        "computed the same in float64; its blocks fill the time that was measured around them",
        "on which device, how fast, or what a rewritten agent did in its blocks",
        (
            *("witness", "pace", "steps", "window", "data_digest", "evidence"),
            *("parameter_count", "finite_loss", "batch_fits"),
        ),
        _session,
    ),
    Row(
        "learning",
        "It learns",
        "its test loss or accuracy is in the range of honest trainings of this length",
        "that these are of this training",
        ("accuracy", "falling_loss"),
        _by_checks("self_attested"),
    ),
    Row(
        "plausible",
        "Its figures are plausible",
        "its device's peak, its matrix product, its other times and other owners' results do not "
        "contradict it",
        "that it was so fast: an invented figure within these limits passes",
        (
            *("below_peak", "own_product", "mean_over_median", "possible_speed", "times_fit"),
            "outlier",
        ),
        _by_checks("self_attested"),
    ),
    Row(
        "speed",
        "It was that fast",
        "the times of the blocks are those of its training",
        "how long the training took: only the sender saw the clock",
        (),
        _claimed(
            "session and speed hold against slips and unchanged agents; only a second owner's "
            "result bounds a rewritten agent"
        ),
    ),
    Row(
        "hardware",
        "On this hardware",
        "machine and framework name the same device, and nothing contradicts itself",
        "that the machine is what it says: nobody else saw it",
        ("placement", "device_listed", "consistent"),
        _claimed("the hardware is the sender's word"),
    ),
    Row(
        "selection",
        "Nothing beside it was left out",
        "no repeat of its run is missing; in the "
        f"{DAYS} days before and after it its key took no challenge without a result, and withdrew "
        "and hid none",
        "what another key measured, or this one between a challenge and its result",
        (),
        _selection,
    ),
    Row(
        "versions",
        "With these versions",
        "framework, driver and system have these versions",
        "that these versions ran: nobody else saw them",
        (),
        _claimed("the versions are the sender's word"),
    ),
    Row(
        "energy",
        "With this energy",
        "its power and its FLOPs a joule are possible",
        "how much energy it took: only the sender read the counter",
        ("energy",),
        _claimed("the energy is the sender's word"),
    ),
    Row(
        "reproduced",
        "Reproduced by others",
        "two or more other confirmed owners measured a similar speed",
        "that these owners are independent: the operator vouches for that",
        (),
        _reproduced,
    ),
)
