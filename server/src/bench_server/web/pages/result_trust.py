"""What a result shows and what it does not: trust level, checks, reproduction, ask."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sqlmodel import Session

from bench_protocol.payload.result import Result
from bench_protocol.trust import asks
from bench_protocol.trust.shows import WIDE_RANGE, Check, Claim, Status

from ...answers import omissions, stored_results
from ...answers.types.results import ReproductionAnswer, ResultAnswer, shown_fields
from ...checks.verdicts import CheckVerdict
from ...db.tables import Measurement

MARKS: Mapping[Status, tuple[str, str]] = {
    "holds": ("passed", "Passed"),
    "does_not_hold": ("failed", "Failed"),
    "not_checked": ("unchecked", "Not checked"),
    "pending": ("warned", "Not shown"),
}


class CheckMark(NamedTuple):
    """One line of the list of checks: its class, a word for the class, the finding."""

    css: str
    words: str
    sentence: str


@dataclass(frozen=True)
class Trust:
    """``wide_range``: its losses were not recomputed; ``level_needs``: what the next level needs;
    ``not_measured``: limits that its workload lacks; ``reproduction``: null before level 3;
    ``ask``: the ask that it answers, if it names one."""

    wide_range: bool
    shows: tuple[Claim, ...]
    level_in_words: str | None
    level_needs: str | None
    checks: tuple[CheckMark, ...]
    not_measured: tuple[str, ...]
    reproduction: ReproductionAnswer | None
    ask: str | None


def trust_of(session: Session, row: Measurement, answer: ResultAnswer, signed: Result) -> Trust:
    missing = omissions.of_results(session.connection(), [answer.id])[answer.id]
    shown = shown_fields(answer, signed, missing)
    verdicts = [Check.of(vars(verdict)).verdict for verdict in answer.verdicts or ()]
    return Trust(
        wide_range=WIDE_RANGE in verdicts,
        shows=shown["shows"],
        level_in_words=shown["level_words"],
        level_needs=shown["level_needs"],
        checks=tuple(map(_mark, answer.verdicts or ())),
        not_measured=shown["not_measured"],
        reproduction=stored_results.reproduction_of(session, row),
        ask=_ask(signed, row.ask_id),
    )


def _mark(verdict: CheckVerdict) -> CheckMark:
    """A check that failed and only lowers the trust level is a warning."""
    status = Check.of(vars(verdict)).status
    if status == "does_not_hold" and verdict.effect in ("stale", "doubtful"):
        return CheckMark("warned", "Not shown", verdict.sentence)
    return CheckMark(*MARKS[status], verdict.sentence)


def _ask(signed: Result, ask_id: str | None) -> str | None:
    if signed.asked is None:
        return None
    if ask_id is None:
        return "It names an ask that this server did not draw for it, so it answers none"
    why = next(why for reason, why in asks.WORDS.items() if reason == signed.asked.reason)
    return f"It answers an ask of this server: {why}"
