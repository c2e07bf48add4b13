"""Words for how long a plan takes."""

from collections.abc import Sequence

from bench_protocol.base import format as people

from ..plan.plan import PlannedCell


def estimate(cells: Sequence[PlannedCell], seconds: float) -> str:
    """``about 3 min 20 s``, and where nothing was measured before, that this is a guess."""
    about = f"about {people.rough(seconds)}"
    guessed = {f"{one.cell.framework} {one.cell.device}": None for one in cells if one.guessed}
    if not guessed:
        return about
    if all(one.guessed for one in cells):
        return f"{about}, a guess: nothing was measured here yet"
    return f"{about}, in part a guess: nothing was measured here yet with {', '.join(guessed)}"
