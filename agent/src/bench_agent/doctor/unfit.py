"""Refuse systems on which every figure would be wrong."""

from ..base.errors import UsageProblem
from ..base.home import Home
from .surroundings import Surroundings
from .table import examine


def refuse_unfit(home: Home) -> None:
    """Stop on WSL 1, native Windows, and a Python that Rosetta translates.

    Raises:
        UsageProblem: the text is doctor's finding and the command that fixes it.
    """
    for finding in examine(Surroundings(home), ("system", "architecture")):
        if finding.verdict == "fail":
            raise UsageProblem(f"{finding.sentence}\n  fix: {finding.hint}")
