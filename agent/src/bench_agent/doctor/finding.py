"""What a check found."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["ok", "warn", "fail", "skip"]


@dataclass(frozen=True)
class Finding:
    """One verdict.

    ``id`` is the check's, with its subject after a dot where there are several
    (``frameworks.mlx``). ``warn``: it runs, but slower or not all of it; ``fail``: it does not;
    ``skip``: there is nothing to check here. ``mend`` can be pasted into a shell; None where
    nothing needs mending or no command does it.
    """

    id: str
    verdict: Status
    sentence: str
    mend: str | None = None

    def document(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


def exit_code(findings: Iterable[Finding]) -> int:
    """0 when nothing fails, else 1."""
    return int(any(finding.verdict == "fail" for finding in findings))
