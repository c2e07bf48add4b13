"""Show doctor's findings: a table for people, JSON for programs."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .finding import Finding, Status, exit_code

STYLES: dict[Status, str] = {"ok": "green", "warn": "yellow", "fail": "bold red", "skip": "dim"}


def document(findings: Sequence[Finding]) -> dict[str, Any]:
    """All findings, and whether anything fails."""
    return {
        "healthy": exit_code(findings) == 0,
        "findings": [finding.document() for finding in findings],
    }


def print_findings(findings: Sequence[Finding], console: Console | None = None) -> None:
    """Print a table of the findings, then each fix on its own lines, so that it can be copied."""
    console = console or Console()
    table = Table()
    for heading in ("check", "verdict", "finding"):
        table.add_column(heading, no_wrap=heading != "finding")
    for finding in findings:
        if finding.verdict != "skip":
            verdict = Text(finding.verdict, style=STYLES[finding.verdict])
            table.add_row(finding.id, verdict, Text(finding.sentence))
    console.print(table)
    skipped = [finding.id for finding in findings if finding.verdict == "skip"]
    if skipped:
        console.print(f"nothing to check: {', '.join(skipped)}", markup=False)
    for finding in findings:
        if finding.hint and finding.verdict in ("warn", "fail"):
            console.print(f"\nto fix {finding.id}:", markup=False)
            # Not wrapped: a line break would break the command.
            console.print(Text(f"  {finding.hint}"), soft_wrap=True)
