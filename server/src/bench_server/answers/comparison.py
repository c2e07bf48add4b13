"""Compare two to twenty things: query, rank, answer. The others are compared with the first, each
over the rows that both have, so a further thing changes nothing between two.

A thing is a hardware, a machine, a result, a published figure, or a set-up: ``setup-ID`` is all
ranked results of the hardware of result ID, on its workload and in its set-up, like a board's row.

Hardware and machines are compared each at its best: a row is a workload, and each thing has its
best set-up there, as scores have them. Or on the same software: a row is a cell, which consists
of workload, framework, recipe, batch size and precision, and each thing has its fastest figure
there. Data and timing are the cell's own: unlike ones are marked.

If no thing is a hardware or a machine, each is one set-up, and the question may be which framework
or recipe is faster on one machine. Then a cell omits framework and recipe (null), and the names of
the things contain them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import asdict
from statistics import geometric_mean
from typing import Any, NamedTuple

from sqlmodel import Session

from bench_protocol.catalogue import speeds
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.matrix import PRECISIONS, RECIPES

from ..errors import InvalidQuery
from ..projection import position
from ..ranking.best import best
from ..ranking.compare import Comparison, Comparisons, Scope
from ..ranking.figures import Figure
from ..ranking.score import best_of
from .compared_things import ComparedId, find, names_of
from .prices import NO_PRICES, Price, Prices
from .types.comparison import (
    Across,
    CompareAnswer,
    ComparedCell,
    ComparedRow,
    ComparedThing,
    Mode,
    ThingKind,
)
from .types.leaderboard import epoch_samples
from .types.shared_fields import rate_fields
from .verdicts import FIELDS, verdicts, verdicts_over_rows

WORKLOADS = {workload.name: workload for workload in CATALOGUE}


class CellKey(NamedTuple):
    """The fields that two things must share for a comparison. Those that are compared are null."""

    workload: str
    framework: str | None
    recipe: str | None
    batch_size: int | None
    precision: str


Side = dict[CellKey, Figure]


class Column(NamedTuple):
    """A thing, its figures by cell, the cells in which it has held ones, and its price."""

    thing: ComparedId
    side: Side
    held: Set[CellKey]
    price: Price | None


def compare(
    session: Session,
    ids: tuple[str, ...],
    prices: Prices = NO_PRICES,
    across: Across | None = None,
    mode: Mode | None = None,
) -> CompareAnswer:
    """``across``: an axis that cells omit, of set-ups and results alone; ``mode``: of hardware and
    machines, ``best`` by default. Raises InvalidQuery if either is of other things, or an id or a
    price names nothing that is compared."""
    stranger = next((item for item in prices.of_reader if item not in ids), None)
    if stranger is not None:
        raise InvalidQuery(f"{stranger[:100]!r} is not among ids", field=f"price.{stranger[:100]}")
    named = [find(session, item) for item in ids]
    kinds = {thing.kind for thing, _ in named}
    left_out = _left_out(kinds, across)
    mode = _mode(kinds, mode)
    sides = [_side(figures, mode, left_out) for _, figures in named]
    held = [
        _side([one._replace(held=False) for one in figures if one.held], mode, left_out).keys()
        for _, figures in named
    ]
    columns = [
        Column(thing, side, held, prices.of(thing.id, thing.hardware_slug, thing.hardware))
        for (thing, _), side, held in zip(named, sides, held, strict=True)
    ]
    keys = sorted({key for one in columns for key in (*one.side, *one.held)}, key=_order)
    base, *others = sides
    # Each pair of things is a question of its own: a further column corrects no other one.
    shared = [[(side[key], base[key]) for key in base if key in side] for side in others]
    found = [verdicts(session, pairs) for pairs in shared]
    rows = [_row(key, columns, prices, found) for key in keys]
    of_first = dict.fromkeys(FIELDS) | {"speed_up": 1.0 if any(shared) else None}
    overall = [of_first, *map(verdicts_over_rows, shared, found)]
    names = names_of([column.thing for column in columns])
    things = tuple(
        ComparedThing(
            id=column.thing.id,
            kind=column.thing.kind,
            name=names[place],
            hardware_slug=column.thing.hardware_slug,
            **overall[place],
            common_cells=sum(row.cells[0] is not None is not row.cells[place] for row in rows),
            scope=_scope(rows, place),
            relative_energy=_relative_energy(rows, place),
            price=column.price,
        )
        for place, column in enumerate(columns)
    )
    ordered = tuple(sorted(rows, key=lambda row: not row.common))
    as_of = position.read(session.connection()).next_index
    return CompareAnswer(
        as_of=as_of,
        things=things,
        common_cells=sum(row.common for row in rows),
        all_cells=len(rows),
        comparisons=max(one.count for one in found),
        across=across,
        mode=mode,
        energy_currency=prices.energy_currency,
        rows=ordered,
    )


def _side(figures: Iterable[Figure], mode: Mode | None, left_out: tuple[str, ...]) -> Side:
    """Of each cell the best figure that is not held; in the mode ``best`` of each workload."""
    if mode == "best":
        return {
            _key(figure)._replace(framework=None, recipe=None): figure
            for figure in best_of(figures).values()
        }
    cells: defaultdict[CellKey, list[Figure]] = defaultdict(list)
    nothing: dict[str, Any] = dict.fromkeys(left_out)
    for figure in figures:
        cells[_key(figure)._replace(**nothing)].append(figure)
    return {key: found for key, of_cell in cells.items() if (found := best(of_cell))}


def _mode(kinds: set[ThingKind], mode: Mode | None) -> Mode | None:
    if kinds <= {"hardware", "machine"}:
        return mode or "best"
    if mode is not None:
        raise InvalidQuery(
            "mode compares hardware and machines, not set-ups, results and published figures",
            field="mode",
            hint="leave mode out, or name hardware and machines in ids",
        )
    return "same_software" if kinds & {"hardware", "machine"} else None


def _left_out(kinds: set[ThingKind], across: Across | None) -> tuple[str, ...]:
    of_machines = kinds & {"hardware", "machine"}
    if across and of_machines:
        raise InvalidQuery(
            "across compares set-ups, results and published figures, not hardware or machines",
            field="across",
            hint="name set-ups (setup-ID) or results in ids",
        )
    return () if of_machines else ("framework", "recipe", *([across] if across else ()))


def _row(
    key: CellKey, columns: Sequence[Column], prices: Prices, found: Sequence[Comparisons]
) -> ComparedRow:
    base, cells = columns[0].side.get(key), []
    for place, column in enumerate(columns):
        figure = column.side.get(key)
        verdict: dict[str, Any] = dict.fromkeys(Comparison.__dataclass_fields__)
        if place == 0:
            verdict["speed_up"] = 1.0
        elif figure is not None and base is not None:
            verdict = asdict(found[place - 1].of[figure, base])
        cells.append(figure and _cell(figure, column.price, prices, verdict))
    return ComparedRow(
        **key._asdict(),
        common=any(cells[1:]) and cells[0] is not None,
        cells=tuple(cells),
        held=tuple(key in column.held and key not in column.side for column in columns),
    )


def _cell(
    figure: Figure, price: Price | None, prices: Prices, verdict: dict[str, Any]
) -> ComparedCell:
    speed, workload = 1e9 / figure.ns_per_sample, figure.subject.workload
    per_price = speed / price.amount if price else None
    joules = figure.evidence.joules_per_sample
    per_epoch = _joules_per_epoch(figure)
    return ComparedCell(
        **figure.setup._asdict(),
        **rate_fields(figure),
        repeats=figure.repeats,
        trust_level=figure.trust_level,
        backing=figure.backing,
        published=figure.published,
        joules_per_epoch=per_epoch,
        samples_per_joule=1 / joules if joules else None,
        tokens_per_joule=speeds.of_tokens(workload, 1 / joules) if joules else None,
        energy_scope=figure.evidence.energy_scope,
        energy_cost_per_epoch=prices.of_energy(per_epoch),
        samples_per_second_per_price=per_price,
        tokens_per_second_per_price=speeds.of_tokens(workload, per_price),
        **verdict,
    )


def _relative_energy(rows: Sequence[ComparedRow], place: int) -> float | None:
    """The energy of a sample over that of the first thing, over the rows that both have."""
    cells = [(row.cells[place], row.cells[0]) for row in rows]
    pairs = [(own, base) for own, base in cells if own and base]
    ratios = [
        base.samples_per_joule / own.samples_per_joule
        for own, base in pairs
        if own.samples_per_joule and base.samples_per_joule
        if own.energy_scope == base.energy_scope
    ]
    return geometric_mean(ratios) if ratios and len(ratios) == len(pairs) else None


def _joules_per_epoch(figure: Figure) -> float | None:
    joules, workload = figure.evidence.joules_per_sample, WORKLOADS.get(figure.subject.workload)
    if joules is None or workload is None:
        return None
    return joules * epoch_samples(workload, figure.setup.batch_size)


def _scope(rows: Sequence[ComparedRow], place: int) -> Scope | None:
    scopes = {cell.scope for row in rows if (cell := row.cells[place])}
    return "machines" if "machines" in scopes else "hardware" if "hardware" in scopes else None


def _key(figure: Figure) -> CellKey:
    setup = figure.setup
    fields = {name: getattr(setup, name) for name in CellKey._fields[1:]}
    return CellKey(figure.subject.workload, **fields)


def _order(key: CellKey) -> tuple[Any, ...]:
    """Workloads, recipes and precisions have the order of the catalogue, unknown ones last."""
    return (
        _position(key.workload, [*WORKLOADS]),
        key.framework or "",
        _position(key.recipe, RECIPES),
        key.batch_size or 0,
        _position(key.precision, PRECISIONS),
    )


def _position(name: str | None, names: Sequence[str]) -> tuple[int, str]:
    return (names.index(name) if name in names else len(names)), name or ""
