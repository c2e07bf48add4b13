"""Comparing two to twenty things: query -> rank -> answer. The first is what the others are
compared with; cells are rows, and only cells that all have enter the overall figure.

A thing is a hardware, a result, or a set-up: ``setup-ID`` is everything that counts of the hardware
of result ID, on its workload and in its set-up, just as a board's row is.

A cell holds workload, framework, recipe, batch size, precision and data, so that hardware is
compared doing the same. Where no hardware is among the things, each is one set-up, and the question
may be which framework or recipe is faster on one machine: a cell then leaves framework and recipe
out (null), and the things' names hold them.
"""

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from statistics import geometric_mean
from typing import Any, Literal, NamedTuple

from sqlmodel import Session

from bench_protocol.catalogue import CATALOGUE

from . import queries, rank
from .problems import NotFound

SETUP = "setup-"
Kind = Literal["hardware", "result", "setup"]


class CellKey(NamedTuple):
    """What two things must share for their times to be compared. Framework and recipe are null
    where they are what is compared."""

    workload: str
    framework: str | None
    recipe: str | None
    batch_size: int
    precision: str
    data: str


@dataclass(frozen=True)
class ComparedThing:
    """One column. ``speed_up`` is the geometric mean over the common cells, null without any."""

    id: str
    kind: Kind
    name: str
    hardware_slug: str
    speed_up: float | None


@dataclass(frozen=True)
class ComparedCell:
    """One thing in one cell: its speed, and how it compares with the first thing there.

    ``low`` and ``high`` bound the speed-up with 95 % confidence; null with too few runs. ``n`` and
    ``n_first`` count independent values, each a ``unit``.
    """

    samples_per_second: float
    repeats: int
    speed_up: float | None
    low: float | None
    high: float | None
    n: int | None
    n_first: int | None
    unit: str | None
    kind: rank.Kind | None
    verdict: str | None


@dataclass(frozen=True)
class ComparedRow:
    """One cell of the matrix; ``cells`` in the order of the things, null where not measured.

    The device is not part of it: it comes with the hardware, and hardware is what is compared.
    ``framework`` and ``recipe`` are null where no hardware is compared, only set-ups.
    """

    workload: str
    framework: str | None
    recipe: str | None
    batch_size: int
    precision: str
    data: str
    common: bool
    cells: tuple[ComparedCell | None, ...]


@dataclass(frozen=True)
class CompareAnswer:
    """Things as columns, cells as rows. Cells on generated data never meet cells on real data."""

    things: tuple[ComparedThing, ...]
    common_cells: int
    all_cells: int
    rows: tuple[ComparedRow, ...]


def compare(session: Session, ids: tuple[str, ...]) -> CompareAnswer:
    """Compare hardware, results and set-ups.

    Raises:
        NotFound: one of the ids is none of these.
    """
    found = [_find(session, item) for item in ids]
    sides = [side for _, side in found]
    if all(thing.kind != "hardware" for thing, _ in found):
        sides = [_of_setups(side) for side in sides]
    names = _names([thing for thing, _ in found])
    keys = sorted({key for side in sides for key in side}, key=_order)
    rows = tuple(_row(key, sides) for key in keys)
    common = [row for row in rows if row.common]
    things = tuple(
        ComparedThing(
            thing.id, thing.kind, name, thing.hardware_slug, speed_up=_overall(common, place)
        )
        for place, ((thing, _), name) in enumerate(zip(found, names, strict=True))
    )
    return CompareAnswer(
        things, len(common), len(rows), tuple(sorted(rows, key=lambda row: not row.common))
    )


class Thing(NamedTuple):
    """What an id names. ``further`` tells set-ups apart whose names are the same."""

    id: str
    kind: Kind
    name: str
    hardware_slug: str
    further: str = ""


Side = dict[CellKey, list[rank.Repeat]]


def _find(session: Session, item: str) -> tuple[Thing, Side]:
    side: defaultdict[CellKey, list[rank.Repeat]] = defaultdict(list)
    for workload in CATALOGUE:
        for repeat in queries.hardware_repeats(session, item, workload.digest):
            side[_key(workload.name, repeat.setup)].append(repeat)
    if side:
        first = next(iter(side.values()))[0]
        return Thing(item, "hardware", first.hardware, item), dict(side)
    whole = item.startswith(SETUP)
    try:
        _, row = queries.result_with_id(session, item.removeprefix(SETUP))
    except NotFound:
        raise NotFound(
            f"{item[:100]!r} is no hardware with ranked results, no result and no set-up",
            field="ids",
            mend="GET /api/v1/leaderboard lists hardware_slug, GET /api/v1/results lists id; "
            "setup-ID is the set-up of a result",
        ) from None
    setup = queries.setup_of(row)
    name = f"{row.hardware}, {setup.words}" + ("" if whole else f", result {item[:8]}")
    further = f"{row.workload}, batch {setup.batch_size:,}, {setup.data} data, on {setup.device}"
    thing = Thing(item, "setup" if whole else "result", name, row.hardware_slug, further)
    if whole:
        repeats = queries.hardware_repeats(session, row.hardware_slug, row.workload_digest)
        counted = [repeat for repeat in repeats if repeat.setup == setup]
    else:
        counted = [queries.as_repeat(row)] if row.rankable else []
    return thing, {_key(row.workload, setup): counted} if counted else {}


def _of_setups(side: Side) -> Side:
    """The same, with framework and recipe left out of its cell; there is one at most."""
    return {key._replace(framework=None, recipe=None): repeats for key, repeats in side.items()}


def _names(things: list[Thing]) -> list[str]:
    """Their names, longer where two would be the same."""
    times = Counter(thing.name for thing in things)
    return [f"{t.name}, {t.further}" if times[t.name] > 1 and t.further else t.name for t in things]


def _row(key: CellKey, sides: list[Side]) -> ComparedRow:
    cells = tuple(
        _cell(side.get(key), sides[0].get(key), first=place == 0)
        for place, side in enumerate(sides)
    )
    return ComparedRow(**key._asdict(), common=None not in cells, cells=cells)


def _cell(
    own: list[rank.Repeat] | None, base: list[rank.Repeat] | None, *, first: bool
) -> ComparedCell | None:
    if not own:
        return None
    figure = rank.figures(own)[0]
    speed, repeats = 1e9 / figure.ns_per_sample, len(own)
    if first or not base:
        speed_up = 1.0 if first else None
        return ComparedCell(speed, repeats, speed_up, *[None] * 7)
    found = asdict(rank.compare(own, base))
    return ComparedCell(
        speed,
        repeats,
        found["speed_up"],
        found["low"],
        found["high"],
        found["n_a"],
        found["n_b"],
        found["unit"],
        found["kind"],
        found["verdict"],
    )


def _overall(common: list[ComparedRow], place: int) -> float | None:
    cells = [row.cells[place] for row in common]
    ratios = [cell.speed_up for cell in cells if cell and cell.speed_up is not None]
    return geometric_mean(ratios) if ratios else None


def _key(workload: str, setup: rank.Setup) -> CellKey:
    fields = {name: value for name, value in setup._asdict().items() if name != "device"}
    return CellKey(workload, **fields)


def _order(key: CellKey) -> tuple[Any, ...]:
    names = [workload.name for workload in CATALOGUE]
    place = names.index(key.workload) if key.workload in names else len(names)
    return place, *(value or "" for value in key)
