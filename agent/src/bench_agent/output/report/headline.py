"""The finding of a run in one sentence: its fastest set-ups, and what the tuned loop is worth."""

from statistics import geometric_mean

from bench_protocol.base import format as people

from ..names import setup_name
from .charts import at_one_batch, fastest_of_each
from .figures import CellFigures, Report, marked, speed_up

# More workloads than these are counted, not listed.
MOST_LISTED = 2


def headline(report: Report, rates: bool = True) -> str:
    """``mnist-cnn trains fastest with mlx metal tuned (142,222 samples/s); tuned is 2.00 times as
    fast as naive``; without a full stop.

    Args:
        rates: name the samples per second.
    """
    best = fastest_of_each(at_one_batch(report.cells))
    if not best:
        return "no set-up could be measured"
    sentence = _listed(best, rates) if len(best) <= MOST_LISTED else _counted(best)
    return f"{sentence}{_tuned_words(report)}"


def tuned_over_naive(report: Report) -> float | None:
    """How many times as fast tuned loops are: the geometric mean over every set-up that was
    measured both ways, undisturbed; None without one."""
    ratios = [
        speed_up(figures, naive).speed_up
        for figures in report.cells
        if figures.cell.recipe == "tuned" and (naive := naive_of(report, figures))
    ]
    return geometric_mean(ratios) if ratios else None


def _tuned_words(report: Report) -> str:
    """What tuned loops are worth, over which pairs, and how sure these are. Empty without pairs."""
    cells = {figures.cell for figures in report.cells}
    tuned = [
        figures
        for figures in report.cells
        if figures.cell.recipe == "tuned"
        and figures.cell.model_copy(update={"recipe": "naive"}) in cells
    ]
    used = [(figures, naive) for figures in tuned if (naive := naive_of(report, figures))]
    worth = tuned_over_naive(report)
    if worth is None:
        slowed = "; tuned is not compared with naive, because other work or heat slowed them"
        return slowed if tuned else ""
    doubted = sum(figures.in_doubt or naive.in_doubt for figures, naive in used)
    pairs = people.plural(len(tuned), "pair")
    notes = [f"{len(used)} of {pairs}" if len(used) < len(tuned) else pairs]
    notes += [f"{doubted} in doubt"] if doubted else []
    rest = "; the rest was slowed by other work or heat" if len(used) < len(tuned) else ""
    told = f" ({', '.join(notes)}{rest})" if doubted or rest else ""
    return f"; tuned {people.faster_than(worth)} naive{told}"


def naive_of(report: Report, figures: CellFigures) -> CellFigures | None:
    """The naive loop that a figure can be compared with; None where either was disturbed: the
    ratio would be that of the other programs."""
    naive = figures.cell.model_copy(update={"recipe": "naive"})
    base = next((other for other in report.cells if other.cell == naive), None)
    if base is None or base is figures or base.slowed or figures.slowed:
        return None
    return base


def _listed(best: list[CellFigures], rates: bool) -> str:
    parts = []
    for number, figures in enumerate(best):
        verb = "" if number else "trains fastest "
        rate = f" ({marked(people.rate(figures.samples_per_second), figures)}"
        unit = "" if number else " samples/s"
        shown = f"{rate}{unit})" if rates else ""
        parts.append(f"{figures.cell.workload} {verb}with {setup_name(figures.cell)}{shown}")
    return ", ".join(parts)


def _counted(best: list[CellFigures]) -> str:
    names = [setup_name(figures.cell) for figures in best]
    winner = max(names, key=names.count)
    return f"{winner} is the fastest set-up of {names.count(winner)} of {len(names)} workloads"
