"""How many hardware models of each family are on the boards."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from .criteria import Search
from .families import FAMILIES, contains
from .leaderboard import Ranking


def families(rankings: Sequence[Ranking], search: Search) -> dict[str, int]:
    """The number of hardware models by family, without families that have none. The family that is
    searched for does not count."""
    any_family = replace(search, family=None)
    rows = (row for one in rankings for row in one.rows if any_family.finds(row.figure))
    found = {
        (name, figure.hardware_slug)
        for row in rows
        for figure in (row.figure, *row.others)
        for name in FAMILIES
        if contains(name, figure.hardware, figure.setup.device)
    }
    counts = Counter(name for name, _ in found)
    return {name: counts[name] for name in FAMILIES if counts[name]}
