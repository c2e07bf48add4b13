"""The finding of a check: verdict, sentence and fix."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["ok", "warn", "fail", "skip"]


@dataclass(frozen=True)
class Finding:
    """One finding. ``id`` is the check's, with a subject after a dot if there are several
    (``frameworks.mlx``). ``warn``: it runs, but slower or not all of it; ``fail``: it does not;
    ``skip``: there is nothing to check here. ``hint`` fixes it: a command for a shell, or where
    none does, what to do; None if nothing needs a fix or nothing is known to fix it.
    """

    id: str
    verdict: Status
    sentence: str
    hint: str | None = None

    def document(self) -> dict[str, Any]:
        """The finding as JSON members."""
        return asdict(self)


def exit_code(findings: Iterable[Finding]) -> int:
    """0 if no check fails, else 1."""
    return int(any(finding.verdict == "fail" for finding in findings))
