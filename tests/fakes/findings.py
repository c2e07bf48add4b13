"""Doctor's findings in a short form."""

from collections.abc import Iterable

from bench_agent.doctor.finding import Finding


def verdicts(findings: Iterable[Finding]) -> dict[str, str]:
    return {finding.id: finding.verdict for finding in findings}


def only(findings: Iterable[Finding]) -> tuple[str, str]:
    """Verdict and fix of a single finding."""
    (finding,) = findings
    assert finding.verdict in ("ok", "skip") or finding.hint
    return finding.verdict, finding.hint or ""
