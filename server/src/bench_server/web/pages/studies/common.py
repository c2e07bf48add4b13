"""Shared by the pages of the studies: how sure a heading is, the address of the JSON twin."""

from collections.abc import Sequence

from ....answers.studies import HardwareChoice, PairChoice
from ....ranking.compare import Comparison
from ..common import address

# Ends a heading that rests on a comparison without a verdict.
TOO_FEW = "; too few runs to be sure"
NOT_CLEAR = ", without a clear difference"


def sureness(deciding: Sequence[Comparison]) -> tuple[str, str]:
    """The verb of a heading, and its end."""
    sure = sum(one.verdict_kind in ("faster", "slower") for one in deciding)
    if sure == len(deciding):
        return "is", ""
    if any(one.verdict_kind == "too_few_runs" for one in deciding):
        return ("is", "; some comparisons have too few runs") if sure else ("looks", TOO_FEW)
    return ("is", "; some differences are not clear") if sure else ("looks", NOT_CLEAR)


def twin(name: str, choice: HardwareChoice | PairChoice) -> str:
    """The address of the same answer as JSON."""
    return address(f"/api/v1/{name}", choice.model_dump(exclude_none=True, exclude_defaults=True))
