"""Changes of speed from one version to the next, on the machines that have both.

A machine's runs of one version can be of several levels: another update, or nothing known, changed
its speed in between. So on each machine the level just before the update is compared with the level
just after it, as its history shows them (:mod:`..history`). Disturbed runs are in no level while
the machine has others, and machines with disturbed levels are left out while there are others.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median_high
from typing import NamedTuple

from sqlmodel import Session

from ...ranking.compare import Comparison, compare_on_machines, corrected
from ...ranking.figures import Figure
from ...ranking.medians import combined, counting
from ...ranking.ranges import Bounds, Margins, between_repeats, of_figure
from ..runs import Run, changes_of_level, counting_runs, middle_of, runs_of, sides

# Up to this number of machines the answer names each.
FEW_MACHINES = 2
# A limit of time: each machine's history is searched for changes.
MOST_MACHINES = 100


class Version(NamedTuple):
    """The runs of one version, by machine, and the figures of these machines."""

    name: str
    runs: dict[str, list[Figure]]
    machines: dict[str, Figure]

    @classmethod
    def of(cls, name: str, runs: Iterable[Figure]) -> "Version":
        by_machine: defaultdict[str, list[Figure]] = defaultdict(list)
        for run in runs:
            by_machine[run.subject.machine_id].append(run)
        machines = {id: combined(of_one, "machine")[0] for id, of_one in by_machine.items()}
        return cls(name, dict(by_machine), machines)


@dataclass(frozen=True)
class MachineUpdate:
    """What a version changed on one machine: ``speed_up`` is the ratio of the levels just before
    and just after the update, ``marked`` whether its history marks a change of level there."""

    machine_id: str
    speed_up: float
    marked: bool


@dataclass(frozen=True)
class Update:
    """What a version changed against the version before.

    ``compared``: over the machines that have both, at most 100, those with most runs; null if there
    are none. ``only_one``: machines that have one of the two versions only, and are not in it;
    ``left_out``: those that have both and are not in it because their results of one of the two
    are disturbed and others' are not. ``machines``: named where one or two are in it.
    """

    compared: Comparison | None
    only_one: int
    left_out: int
    machines: tuple[MachineUpdate, ...]


class Level(NamedTuple):
    """A machine's time in a version, ns a sample, and its margins between repeats."""

    ns_per_sample: float
    margins: Margins

    @classmethod
    def of_all(cls, version: Figure) -> "Level":
        return cls(version.ns_per_sample, of_figure(version))

    @classmethod
    def of(cls, runs: Sequence[Run], version: Figure) -> "Level":
        """Of some runs of a version; of one repeat with the margins of its figure."""
        times = [repeat.ns_per_sample for run in runs for repeat in counting(run)]
        median = median_high(middle_of(run).ns_per_sample for run in runs)
        if len(times) == 1:
            return cls.of_all(version)
        return cls(median, between_repeats(median, min(times), max(times)))


class Levels(NamedTuple):
    """``marked``: the history marks a change; ``disturbed``: one level is of disturbed runs."""

    machine_id: str
    before: Level
    after: Level
    marked: bool
    disturbed: bool

    @property
    def speed_up(self) -> float:
        return self.before.ns_per_sample / self.after.ns_per_sample

    @property
    def times(self) -> tuple[float, float, Bounds]:
        (was, was_margins), (now, margins) = self.before, self.after
        return now, was, margins.over(was_margins).around(self.speed_up)


def updates(session: Session, ordered: Sequence[Version]) -> tuple[list[Update | None], int]:
    """What each version changed, None for the first and oldest, and the number of verdicts."""
    pairs = list(pairwise(ordered))
    every = [[_levels(session, *pair, id) for id in _with_both(*pair)] for pair in pairs]
    levels = [counting(of_pair) for of_pair in every]
    found, count = corrected(
        [compare_on_machines([one.times for one in of_pair]) for of_pair in levels if of_pair]
    )
    comparisons = iter(found)
    return [
        None,
        *(
            Update(
                next(comparisons) if of_pair else None,
                len(old.machines.keys() ^ new.machines.keys()),
                len(all_of_pair) - len(of_pair),
                tuple(
                    MachineUpdate(one.machine_id, one.speed_up, one.marked)
                    for one in of_pair
                    if len(of_pair) <= FEW_MACHINES
                ),
            )
            for (old, new), of_pair, all_of_pair in zip(pairs, levels, every, strict=True)
        ),
    ], count


def _with_both(old: Version, new: Version) -> list[str]:
    both = old.machines.keys() & new.machines.keys()
    runs = {id: len(old.runs[id]) + len(new.runs[id]) for id in both}
    return sorted(both, key=lambda id: (-runs[id], id))[:MOST_MACHINES]


def _levels(session: Session, old: Version, new: Version, id: str) -> Levels:
    """On both sides of the newest change of version, or else the figures of all its runs."""
    runs = counting_runs(runs_of(session, id, new.machines[id].evidence.result_id))
    places = changes_of_level(runs)
    of_old, of_new = ({run.subject.run_id for run in version.runs[id]} for version in (old, new))
    either = [n for n, run in enumerate(runs) if run[0].run_id in of_old | of_new]
    is_new = [run[0].run_id in of_new for run in runs]
    switches = [n for before, n in pairwise(either) if is_new[before] != is_new[n]]
    was, now = old.machines[id], new.machines[id]
    disturbed = was.disturbed or now.disturbed
    of_all = Levels(id, Level.of_all(was), Level.of_all(now), False, disturbed)
    if not switches:
        return of_all
    switch = switches[-1]
    start, edge, end, marked = sides(places, switch, len(runs))
    if marked:
        earlier, later = runs[start:edge], runs[edge:end]
        old_ones, new_ones = (earlier, later) if is_new[switch] else (later, earlier)
    else:
        old_ones = [runs[n] for n in either if start <= n < end and not is_new[n]]
        new_ones = [runs[n] for n in either if start <= n < end and is_new[n]]
    if not (old_ones and new_ones):  # runs of a third version lie between them
        return of_all
    levels = Level.of(old_ones, was), Level.of(new_ones, now)
    return Levels(id, *levels, marked, disturbed)
