"""Show doctor's findings: what works, then each problem with its fix; JSON for programs."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from bench_protocol.base.format import plural

from ..output.console import FAILURE, GOOD, SOFT, WARNING, say, show_table
from .finding import Finding, exit_code

PROBLEMS = {"warn": ("warning", WARNING), "fail": ("failure", FAILURE)}


def document(findings: Sequence[Finding]) -> dict[str, Any]:
    """All findings, and whether anything fails."""
    return {
        "healthy": exit_code(findings) == 0,
        "findings": [finding.document() for finding in findings],
    }


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
    warnings = len(problems) - failures
    counts = [
        plural(count, name)
        for count, name in ((failures, "failure"), (warnings, "warning"))
        if count
    ]
    return f"{' and '.join(counts)}." if counts else "Everything that was checked works."
