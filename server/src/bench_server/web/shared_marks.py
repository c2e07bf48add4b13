"""Marks that all figures of a page share: the page says them once instead of on each row."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bench_protocol.catalogue.matrix import caveat


@dataclass(frozen=True)
class SharedMarks:
    """``untested``: some figures have a recipe that an expert's loop may beat on their kind of
    device; ``level``: the most frequent trust level, None where each row names its own."""

    short: bool
    generated: bool
    untested: bool
    level: int | None = None


def shared_marks(figures: Iterable[Any], level: int | None = None) -> SharedMarks:
    """``figures``: answers with a framework, recipe, device, timing and data. Published figures and
    failures were not timed here, so they have no say."""
    measured = [
        one
        for one in figures
        if not getattr(one, "published", False) and getattr(one, "status", "") != "failed"
    ]
    return SharedMarks(
        short={one.timing for one in measured} == {"short"},
        generated={one.data for one in measured} == {"generated"},
        untested=any(caveat(one.framework, one.recipe, one.device) for one in measured),
        level=level,
    )


def most_frequent_level(figures: Iterable[Any]) -> int | None:
    levels = Counter(one.trust_level for one in figures if not one.published)
    return levels.most_common(1)[0][0] if levels else None
