"""The finding of a check: verdict, sentence and hint. How findings are shown."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

from rich.console import Console

from bench_protocol.base.format import plural

from ..output.console import FAILURE, GOOD, SOFT, WARNING, say, show_table

Status = Literal["ok", "warn", "fail", "skip"]
PROBLEMS = {"warn": ("warning", WARNING), "fail": ("failure", FAILURE)}


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
    """0 if no check fails, else 1."""
    return int(any(finding.verdict == "fail" for finding in findings))


def document(findings: Sequence[Finding]) -> dict[str, Any]:
    """All findings, and whether anything fails."""
    return {"healthy": exit_code(findings) == 0, "findings": [asdict(each) for each in findings]}


def print_findings(findings: Sequence[Finding], console: Console) -> None:
    """Print a table of what works, then each problem and below it the line that fixes it."""
    rows = [(finding.id, finding.sentence) for finding in findings if finding.verdict == "ok"]
    if rows:
        show_table(console, ("check", "what works"), rows)
    if skipped := [finding for finding in findings if finding.verdict == "skip"]:
        reasons = "; ".join(f"{finding.id} ({finding.sentence})" for finding in skipped)
        say(console, f"not checked: {reasons}", SOFT)
    problems = [finding for finding in findings if finding.verdict in PROBLEMS]
    for finding in problems:
        name, style = PROBLEMS[finding.verdict]
        say(console, f"\n{name}, {finding.id}: {finding.sentence}", style)
        if finding.hint:
            say(console, f"  fix: {finding.hint}")
    say(console, f"\n{_in_one_line(problems)}", "" if problems else GOOD)


def _in_one_line(problems: Sequence[Finding]) -> str:
    failures = sum(finding.verdict == "fail" for finding in problems)
    counts = ((failures, "failure"), (len(problems) - failures, "warning"))
    words = [plural(count, name) for count, name in counts if count]
    return f"{' and '.join(words)}." if words else "Everything that was checked works."
