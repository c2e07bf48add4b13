"""``/owners/{owner}``: the machines of one owner, and what the last update changed on them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal
from urllib.parse import quote

from sqlmodel import Session

from bench_protocol.base import format as people
from bench_protocol.catalogue import speeds
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.payload import differences

from ...answers import owners
from ...answers.owners import LastUpdate, OwnedCell, OwnerAnswer
from .common import address

CELL = ("workload", "framework", "device", "recipe", "batch_size", "precision", "data", "timing")
MARKS: Mapping[bool | None, str] = {
    True: "",
    False: "no change marked",
    None: "a mark needs four runs a side",
}


@dataclass(frozen=True)
class CellWords:
    """``kind``: the colour of a marked change of level; ``cause``: what was updated, without it
    ``update`` has words; ``sure``: the interval, or why there is none; ``range`` of the rate,
    between runs or repeats."""

    href: str
    setup: str
    update: str
    rate: str
    range: str
    kind: Literal["faster", "slower", ""]
    speed_up: str
    cause: str
    sure: str
    updated_at: datetime | None


@dataclass(frozen=True)
class MachineRow:
    """A machine with its cells, one for each workload of the page, null where it has none."""

    machine_id: str
    hardware: dict[str, str]
    newest_at: datetime
    cells: tuple[CellWords | None, ...]


@dataclass(frozen=True)
class OwnerPage:
    """``/owners/{owner}``: what did the last update change? ``left_out``: machines not shown."""

    title: str
    heading: str
    json_href: str
    feed_href: str
    answer: OwnerAnswer
    workloads: tuple[str, ...]
    rows: tuple[MachineRow, ...]
    left_out: int


def owner_page(session: Session, label: str) -> OwnerPage:
    """Fill the context. Raises NotFound if the owner has no figures."""
    answer = owners.owner(session, label)
    measured = {cell.workload for machine in answer.machines for cell in machine.cells}
    workloads = tuple(one.name for one in CATALOGUE if one.name in measured)
    rows = []
    for machine in answer.machines:
        cells = {cell.workload: _words(machine.machine_id, cell) for cell in machine.cells}
        row = tuple(cells.get(name) for name in workloads)
        rows.append(MachineRow(machine.machine_id, machine.hardware, machine.newest_at, row))
    return OwnerPage(
        title=f"Machines of {label}",
        heading=heading(answer),
        json_href=f"/api/v1/owners/{quote(label)}",
        feed_href=f"/owners/{quote(label)}/feed.atom",
        answer=answer,
        workloads=workloads,
        rows=tuple(rows),
        left_out=answer.machine_count - len(rows),
    )


def heading(answer: OwnerAnswer) -> str:
    """``Since macOS 14.6 became 15.5, 1 of 3 figures is slower (0.937×), none faster``."""
    updated = [(cell, cell.update) for one in answer.machines for cell in one.cells if cell.update]
    if not updated:
        if all(cell.runs == 1 for one in answer.machines for cell in one.cells):
            return f"{answer.owner} has one run of each figure: measure again after an update"
        return f"{answer.owner}: no driver, system or framework was updated between two runs"
    newest_cell, newest = max(updated, key=lambda pair: pair[1].updated_at)
    cause = _cause(newest_cell, newest)
    alike = [update for cell, update in updated if _cause(cell, update) == cause]
    figures = people.plural(len(alike), "figure")
    if all(one.marked is None for one in alike):
        moved = _range([one.speed_up for one in alike])
        verb = "is" if len(alike) == 1 else "are"
        return f"Since {cause}, {figures} {verb} {moved} as fast; a mark needs four runs a side"
    slower = [one.speed_up for one in alike if one.marked and one.speed_up < 1]
    faster = [one.speed_up for one in alike if one.marked and one.speed_up >= 1]
    if not (slower or faster):
        return f"Since {cause}, no change of speed is marked in {figures}"
    if len(alike) == 1:
        word = "slower" if slower else "faster"
        return f"Since {cause}, {newest_cell.workload} is {word} ({people.ratio(newest.speed_up)})"
    first, second = ("slower", slower), ("faster", faster)
    if not slower:
        first, second = second, first
    verb = "is" if len(first[1]) == 1 else "are"
    there = f"{len(first[1])} of {figures} {verb} {first[0]} ({_range(first[1])})"
    others = f"{len(second[1])} {second[0]} ({_range(second[1])})" if second[1] else ""
    return f"Since {cause}, {there}, {others or f'none {second[0]}'}"


def _range(speed_ups: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(map(people.ratio, (min(speed_ups), max(speed_ups)))))


def _words(machine_id: str, cell: OwnedCell) -> CellWords:
    fields = asdict(cell)
    chosen = {name: fields[name] for name in CELL}
    update = cell.update
    marked = update is not None and update.marked
    sure = ""
    if update is not None:
        low, high = update.speed_up_low, update.speed_up_high
        bounds = f"95 % CI {people.interval(low, high, people.times, '×')}" if low and high else ""
        sure = bounds or MARKS[update.marked]
    return CellWords(
        href=address(f"/machines/{machine_id}", chosen) + "#history",
        setup=f"{cell.framework} {cell.recipe}, batch {cell.batch_size:,}",
        update="no update" if cell.runs > 1 else "one run",
        rate=speeds.short(cell.samples_per_second, cell.workload),
        range=speeds.interval(
            cell.samples_per_second_low, cell.samples_per_second_high, cell.workload
        ),
        kind="" if not marked or update is None else "faster" if update.speed_up >= 1 else "slower",
        speed_up=people.ratio(update.speed_up) if update else "",
        cause=_cause(cell, update) if update else "",
        sure=sure,
        updated_at=update.updated_at if update else None,
    )


def _cause(cell: OwnedCell, update: LastUpdate) -> str:
    """``macOS 14.6 became 15.5, tensorflow 2.18.0 became 2.18.1``."""
    names = {"os_version": "os.version", "framework_version": cell.framework}
    return ", ".join(
        differences.in_words(
            differences.Difference(names.get(one.name, one.name), one.before, one.after), update.os
        )
        for one in update.changed
    )
