"""What a check of doctor found, in a few words."""

from collections.abc import Iterable

from bench_agent.doctor.finding import Finding


def verdicts(findings: Iterable[Finding]) -> dict[str, str]:
    return {finding.id: finding.verdict for finding in findings}


def only(findings: Iterable[Finding]) -> tuple[str, str]:
    """Verdict and mend of the one finding there is."""
    (finding,) = findings
    assert finding.verdict in ("ok", "skip") or finding.mend
    return finding.verdict, finding.mend or ""
