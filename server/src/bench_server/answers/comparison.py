"""Compare two to twenty things: query, rank, answer. The others are compared with the first. Cells
are rows, and only cells that all things have enter the overall figure.

A thing is a hardware, a machine, a result, a published figure, or a set-up: ``setup-ID`` is all
ranked results of the hardware of result ID, on its workload and in its set-up, like a board's row.

A cell consists of workload, framework, recipe, batch size, precision, data and timing, so that
hardware is compared on the same work, and a long timing with a long one. If no thing is a hardware
or a machine, each is one set-up, and the question may be which framework or recipe is faster on one
machine. Then a cell omits framework and recipe (null), and the names of the things contain them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from statistics import geometric_mean
from typing import Any, NamedTuple

from sqlmodel import Session

from bench_protocol.catalogue import CATALOGUE

from ..errors import InvalidQuery, NotFound
from ..projection import position
from ..ranking.compare import Comparison, Comparisons, Scope
from ..ranking.figures import Figure, names_machine
from ..ranking.rows import figure_of_result
from . import queries
from .types import Across, CompareAnswer, ComparedCell, ComparedRow, ComparedThing, ThingKind
from .verdicts import verdicts

SETUP = "setup-"
VERDICT_FIELDS = (
    *("speed_up", "low", "high", "p_value", "adjusted_p_value", "n", "n_first", "unit", "scope"),
    *("kind", "verdict"),
)


class CellKey(NamedTuple):
    """The fields that two things must share for a comparison. Framework, recipe and batch size are
    null if they are compared."""

    workload: str
    framework: str | None
    recipe: str | None
    batch_size: int | None
    precision: str
    data: str
    timing: str


def compare(
    session: Session,
    ids: tuple[str, ...],
    prices: Mapping[str, float] | None = None,
    across: Across | None = None,
) -> CompareAnswer:
    """Compare hardware, machines, results, set-ups and published figures.

    Args:
        prices: prices of some things, all in the same currency.
        across: an axis that cells omit, allowed if only set-ups and results are compared.

    Raises:
        InvalidQuery: an id names none of these.
        InvalidQuery: a price names nothing that is compared; ``across`` with hardware or a machine.
    """
    prices = prices or {}
    stranger = next((item for item in prices if item not in ids), None)
    if stranger is not None:
        raise InvalidQuery(f"{stranger[:100]!r} is not among ids", field=f"price.{stranger[:100]}")
    things_found = [_find(session, item) for item in ids]
    left_out = _left_out({thing.kind for thing, _ in things_found}, across)
    sides = [_without(side, left_out) for _, side in things_found]
    names = _names([thing for thing, _ in things_found])
    keys = sorted({key for side in sides for key in side}, key=_order)
    base, *others = sides
    pairs = [(side[key], base[key]) for key in base for side in others if key in side]
    found = verdicts(session, pairs)
    rows = tuple(_row(key, sides, [prices.get(item) for item in ids], found) for key in keys)
    common = [row for row in rows if row.common]
    things = tuple(
        ComparedThing(
            thing.id,
            thing.kind,
            name,
            thing.hardware_slug,
            speed_up=_overall(common, place),
            scope=_scope(common, place),
            price=prices.get(thing.id),
        )
        for place, ((thing, _), name) in enumerate(zip(things_found, names, strict=True))
    )
    ordered = tuple(sorted(rows, key=lambda row: not row.common))
    as_of = position.read(session.connection()).next_index
    return CompareAnswer(as_of, things, len(common), len(rows), found.count, across, ordered)


class ComparedId(NamedTuple):
    """The thing that an id names. ``further`` distinguishes set-ups with equal names."""

    id: str
    kind: ThingKind
    name: str
    hardware_slug: str
    further: str = ""


Side = dict[CellKey, Figure]


def _find(session: Session, item: str) -> tuple[ComparedId, Side]:
    figures = queries.hardware_figures(session, item)
    if figures:
        first = figures[0]
        return ComparedId(item, "hardware", first.hardware, item), _side(figures)
    figures = queries.machine_figures(session, item)
    if figures:
        first = names_machine(figures)
        name = f"{first.hardware}, machine {item[:8]}"
        return ComparedId(item, "machine", name, first.hardware_slug), _side(figures)
    copied = queries.published_figure(session, item)
    if copied is not None:
        name = f"{copied.hardware}, {copied.setup.words}"
        return _setup_thing(item, "published", name, copied), _side([copied])
    return _find_result(session, item)


def _find_result(session: Session, item: str) -> tuple[ComparedId, Side]:
    whole = item.startswith(SETUP)
    try:
        _, row = queries.result_with_id(session, item.removeprefix(SETUP))
    except NotFound:
        raise InvalidQuery(
            f"ids: {item[:100]!r} is no hardware or machine with ranked results, no result, no "
            "set-up and no published figure",
            field="ids",
            hint="GET /api/v1/leaderboard lists hardware_slug, GET /api/v1/results lists id and "
            "machine_id; setup-ID is the set-up of a result",
        ) from None
    setup, hardware = queries.setup_of(row), row.hardware
    name = f"{hardware}, {setup.words}" + ("" if whole else f", result {item[:8]}")
    further = (
        f"{row.workload}, batch {setup.batch_size:,}, {setup.data} data, on {setup.device}, "
        f"{setup.timing} timing"
    )
    thing = ComparedId(item, "setup" if whole else "result", name, row.hardware_slug, further)
    if whole:
        of_hardware = queries.hardware_figures(session, row.hardware_slug)
        return thing, _side(
            [f for f in of_hardware if (f.subject.workload, f.setup) == (row.workload, setup)]
        )
    return thing, _side([figure_of_result(row)] if row.rankable else [])


def _setup_thing(item: str, kind: ThingKind, name: str, figure: Figure) -> ComparedId:
    setup = figure.setup
    further = (
        f"{figure.subject.workload}, batch {setup.batch_size:,}, on {setup.device}, "
        f"{setup.timing} timing"
    )
    return ComparedId(item, kind, name, figure.hardware_slug, further)


def _side(figures: Iterable[Figure]) -> Side:
    """Figures by cell; the fastest if a machine has a cell on several devices."""
    side: Side = {}
    for figure in figures:
        side.setdefault(_key(figure), figure)
    return side


def _left_out(kinds: set[ThingKind], across: Across | None) -> tuple[str, ...]:
    """The axes that are compared and therefore not part of a cell."""
    of_machines = kinds & {"hardware", "machine"}
    if across and of_machines:
        raise InvalidQuery(
            "across compares set-ups, results and published figures, not hardware or machines",
            field="across",
            hint="name set-ups (setup-ID) or results in ids",
        )
    return () if of_machines else ("framework", "recipe", *([across] if across else ()))


def _without(side: Side, axes: tuple[str, ...]) -> Side:
    """The same thing with axes omitted from its cells. A set-up or result has at most one cell."""
    nothing: dict[str, Any] = dict.fromkeys(axes)
    return {key._replace(**nothing): figure for key, figure in side.items()}


def _names(things: list[ComparedId]) -> list[str]:
    """Names of the things, with details added to equal names."""
    times = Counter(thing.name for thing in things)
    return [f"{t.name}, {t.further}" if times[t.name] > 1 and t.further else t.name for t in things]


def _row(
    key: CellKey, sides: list[Side], prices: list[float | None], found: Comparisons
) -> ComparedRow:
    base = sides[0].get(key)
    cells = tuple(
        _cell(side.get(key), base, price, found, first=place == 0)
        for place, (side, price) in enumerate(zip(sides, prices, strict=True))
    )
    return ComparedRow(**key._asdict(), common=None not in cells, cells=cells)


def _cell(
    thing_figure: Figure | None,
    base: Figure | None,
    price: float | None,
    found: Comparisons,
    *,
    first: bool,
) -> ComparedCell | None:
    if thing_figure is None:
        return None
    compared = None if first or base is None else found.of[thing_figure, base]
    speed = 1e9 / thing_figure.ns_per_sample
    joules = thing_figure.evidence.joules_per_sample
    return ComparedCell(
        samples_per_second=speed,
        batch_size=thing_figure.setup.batch_size,
        repeats=thing_figure.repeats,
        trust_level=thing_figure.trust_level,
        provisional=thing_figure.provisional,
        published=thing_figure.published,
        samples_per_joule=1 / joules if joules else None,
        energy_scope=thing_figure.evidence.energy_scope,
        samples_per_second_per_price=speed / price if price else None,
        **_verdict(compared, first=first),
    )


def _verdict(speed_comparison: Comparison | None, *, first: bool) -> dict[str, Any]:
    if speed_comparison is None:
        return {**dict.fromkeys(VERDICT_FIELDS), "speed_up": 1.0 if first else None}
    fields = asdict(speed_comparison)
    return fields | {"n": fields.pop("n_a"), "n_first": fields.pop("n_b")}


def _overall(common: list[ComparedRow], place: int) -> float | None:
    cells = [row.cells[place] for row in common]
    ratios = [cell.speed_up for cell in cells if cell and cell.speed_up is not None]
    return geometric_mean(ratios) if ratios else None


def _scope(common: list[ComparedRow], place: int) -> Scope | None:
    scopes = {cell.scope for row in common if (cell := row.cells[place])}
    return "machines" if "machines" in scopes else "hardware" if "hardware" in scopes else None


def _key(figure: Figure) -> CellKey:
    setup = figure.setup
    fields = {name: value for name, value in setup._asdict().items() if name != "device"}
    return CellKey(figure.subject.workload, **fields)


def _order(key: CellKey) -> tuple[Any, ...]:
    names = [workload.name for workload in CATALOGUE]
    place = names.index(key.workload) if key.workload in names else len(names)
    return place, *(str(value or "").rjust(20) for value in key)
