"""Compare figures of boards and levels of results with those of the log."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..ranking.figures import Figure, Setup
from .chunk import Fault

# The same code computes figures from the same integers; only the order of sums may differ.
SAME_WITHIN = 1e-9


class Compared(NamedTuple):
    """A hardware in one set-up. The fields are those of a board's row."""

    samples_per_second: float
    trust_level: int
    confirmed_owners: int
    owners: int
    machines: int
    runs: int
    repeats: int
    held: bool


class Level(NamedTuple):
    """The ranking state of one result."""

    trust_level: int
    ranked: bool


# Figures by set-up, whose axes are one word.
Boards = Mapping[str, Compared]


def of_row(row: Mapping[str, Any], workload: str) -> tuple[str, Compared]:
    return _name(row, workload), Compared(*(row[name] for name in Compared._fields))


def of_figure(figure: Figure) -> tuple[str, Compared]:
    place = figure.setup._asdict() | {"hardware_slug": figure.hardware_slug}
    compared = Compared(
        1e9 / figure.ns_per_sample,
        figure.trust_level,
        figure.owners.confirmed,
        figure.owners.total,
        figure.machines,
        figure.runs,
        figure.repeats,
        figure.held,
    )
    return _name(place, figure.subject.workload), compared


def faults(replayed: Boards, shown: Boards) -> Iterator[Fault]:
    """Find the figures that differ, each with its first field that differs."""
    for name in sorted(replayed.keys() | shown.keys()):
        ours, theirs = replayed.get(name), shown.get(name)
        if ours is None or theirs is None or not _same_speed(ours, theirs):
            words = [f"{x.samples_per_second:,.6g}" if x else "nothing" for x in (theirs, ours)]
            detail = f"{words[0]} samples/s shown, {words[1]} follows from the log"
            yield Fault(None, f"{name}: {detail}")
            continue
        for field in Compared._fields[1:]:
            said, right = getattr(theirs, field), getattr(ours, field)
            if said != right:
                what = field.replace("_", " ")
                yield Fault(None, f"{name}: {what} {said} shown, {right} follows from the log")
                break


def level_faults(replayed: Mapping[int, Level], shown: Mapping[int, Level]) -> Iterator[Fault]:
    """Find the results whose level or rank state differs, by the index of their entry."""
    for log_index, theirs in sorted(shown.items()):
        ours = replayed.get(log_index)
        if ours is not None and ours != theirs:
            yield Fault(log_index, f"{_words(theirs)} shown, {_words(ours)} follows from the log")


def _words(level: Level) -> str:
    return f"trust level {level.trust_level}, {'ranked' if level.ranked else 'not ranked'},"


def _same_speed(ours: Compared, theirs: Compared) -> bool:
    difference = abs(ours.samples_per_second - theirs.samples_per_second)
    return difference <= SAME_WITHIN * ours.samples_per_second


def _name(place: Mapping[str, Any], workload: str) -> str:
    parts = (workload, place["hardware_slug"], *(str(place[name]) for name in Setup._fields))
    return " ".join(parts)
