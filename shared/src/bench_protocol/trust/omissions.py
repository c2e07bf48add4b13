"""What the sender of a result did not send or took back: a speed that was chosen among many is too
fast by chance. The server counts it (docs/protocol.md, Omissions)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..base.format import plural

# Days before and after a result in which challenges, withdrawn and hidden results are counted.
DAYS = 30
Gap = tuple[int, int]


@dataclass(frozen=True)
class Omissions:
    """Counts beside one result. ``challenges``: those of its key for other runs, none of which has
    a result; ``renewals``: those of its own run without one; ``withdrawn``: withdrawn and hidden
    results of its key; ``missing_repeats``: first and last of each gap below the highest repeat of
    its cell in its run."""

    challenges: int
    renewals: int
    withdrawn: int
    missing_repeats: tuple[Gap, ...]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Omissions":
        """Read what the API shows. KeyError, TypeError or ValueError if it has another form."""
        counts = {name: int(document[name]) for name in ("challenges", "renewals", "withdrawn")}
        gaps = ((int(first), int(last)) for first, last in document["missing_repeats"])
        return cls(**counts, missing_repeats=tuple(gaps))

    @property
    def chosen(self) -> bool:
        """Whether its sender left something out, and not only an interruption."""
        return bool(self.withdrawn or self.missing_repeats)

    @property
    def words(self) -> str:
        gaps = ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in self.missing_repeats)
        found, renewed = (plural(n, "challenge") for n in (self.challenges, self.renewals))
        parts = (
            (gaps, f"missing from its run: repeat {gaps}"),
            (self.withdrawn, f"{plural(self.withdrawn, 'result')} of its key withdrawn or hidden"),
            (
                self.challenges,
                f"{found} of its key without a result, interrupted runs included",
            ),
            (self.renewals, f"{renewed} of its run without a result"),
        )
        return "; ".join(words for count, words in parts if count)
