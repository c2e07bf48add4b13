"""The finding of a check: verdict, sentence and hint. How findings are shown."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

from rich.console import Console

from bench_protocol.base.format import plural

from ..output.console import FAILURE, GOOD, SOFT, WARNING, say, show_table

Status = Literal["ok", "warn", "fail", "skip"]
PROBLEMS = {"warn": ("Warning", WARNING), "fail": ("Failure", FAILURE)}
RESULTS = {"ok": "passed", "skip": "does not apply"}
ORDER: tuple[Status, ...] = ("fail", "warn", "skip", "ok")


@dataclass(frozen=True)
class Finding:
    """One finding. ``warn``: it runs, but slower or not all of it; ``fail``: it does not; ``skip``:
    there is nothing to check here.

    ``hint`` fixes it: a command for a shell, or where none does, what to do; None if nothing needs
    a fix or nothing is known to fix it. ``id``: a check gives its subject (``mlx``), empty if it
    has one finding; :func:`.table.examine` puts the check's id before it (``frameworks.mlx``).
    """

    id: str
    verdict: Status
    sentence: str
    hint: str | None = None


def _finding(verdict: Status, sentence: str, hint: str | None = None, of: str = "") -> Finding:
    return Finding(of, verdict, sentence, hint)


ok, warn = partial(_finding, "ok"), partial(_finding, "warn")
fail, skip = partial(_finding, "fail"), partial(_finding, "skip")


def exit_code(findings: Iterable[Finding]) -> int:
    return int(any(finding.verdict == "fail" for finding in findings))


def document(findings: Sequence[Finding]) -> dict[str, Any]:
    return {"healthy": exit_code(findings) == 0, "findings": [asdict(each) for each in findings]}


def print_findings(findings: Sequence[Finding], console: Console, every: bool = False) -> None:
    """Print each problem and below it the line that fixes it, what could be added, and in one line
    what works. ``every``: also each check that passed or does not apply here."""
    for finding in sorted(findings, key=lambda one: ORDER.index(one.verdict)):
        if finding.verdict in PROBLEMS or (finding.verdict == "skip" and finding.hint):
            name, style = PROBLEMS.get(finding.verdict, ("Optional", SOFT))
            say(console, f"{name}: {finding.sentence}", style)
            if finding.hint:
                say(console, f"  fix: {finding.hint}")
    passed = [finding for finding in findings if finding.verdict == "ok"]
    if every:
        rest = [*passed, *(one for one in findings if one.verdict == "skip")]
        rows = [(one.id, RESULTS[one.verdict], one.sentence) for one in rest]
        show_table(console, ("check", "result", "why"), rows)
    healthy = not any(finding.verdict in PROBLEMS for finding in findings)
    words = f"{plural(len(passed), 'check')} passed{'' if every else '; --all lists them'}."
    say(console, f"No problem: {words}" if healthy else words, GOOD if healthy else "")
