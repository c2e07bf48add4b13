"""``/``: the leaderboard."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from sqlmodel import Session

from bench_protocol import format as people
from bench_protocol.catalogue import CATALOGUE

from ...answers import leaderboard, queries
from ...answers.facets import Facet, facets
from ...answers.families import FAMILIES
from ...answers.filters import BoardFilters
from ...answers.types import Board, BoardRow, HardwareScore
from ...ranking.owners import TIERS, Tier
from ..dots import DotPlot, Row, Value, dot_plot
from ..heads import HEADS
from .common import Choice, address, hardware_choices, vendor

ROWS_WITH_ALL_WORKLOADS = 10


class Metric(NamedTuple):
    """A metric of a board: the value of ``rank_by`` and the head of its column, the label of its
    link, the field that sets the length of bars, the head of the next column, and what the first of
    the board does."""

    value: str
    label: str
    bar: str
    beside: str
    first: str


SPEED = "fastest_samples_per_second"
METRICS = {
    "throughput": Metric("throughput", "Throughput", SPEED, "time", "trains {} fastest"),
    "time": Metric("time", "Time", SPEED, "throughput", "trains {} fastest"),
    "energy": Metric(
        "energy", "Energy", "joules_per_epoch", "throughput", "trains {} with the least energy"
    ),
    "mfu": Metric("mfu", "MFU", "mfu", "throughput", "uses most of its peak on {}"),
}
# Accuracy has no column of its own.
ACCURACY = METRICS["throughput"]._replace(first="trains {} to the highest accuracy")
NOT_ALL_HAVE = {
    "energy": "contains its energy",
    "mfu": "has hardware with a known peak",
    "accuracy": "has an accuracy",
}
HEADINGS: dict[Tier, str] = {
    "confirmed": "Measured by two or more confirmed owners",
    "several": "Measured by three or more established owners",
    "provisional": "Provisional: measured by fewer than three established owners",
    "new": "Provisional: measured by new owners alone",
}
# Vendors with a colour of their own (site.css).
# Parameters that are fields of the form; the form has the others as hidden fields.
FIELDS = frozenset(
    ("q", "device", "framework", "recipe", "batch_size", "precision", "data", "timing", "baseline")
)
# Parameters that say which board is shown and how, not which results: "clear" keeps them.
VIEW = frozenset(("workload", "group", "baseline", "rank_by", "sort", "energy_scope", "limit"))
# Parameters whose chips are facets, with counts.
FACETS = frozenset(("family", "framework", "recipe"))
# The head of a row's columns; the metric's and the one beside it are between.
BEFORE, BETWEEN, AFTER = ("rank", "hardware"), ("speed-up",), ("spread", "evidence")


class Section(NamedTuple):
    """Rows of one tier on a board. No heading where all rows are of one tier."""

    heading: str | None
    rows: tuple[BoardRow, ...]


class SortHead(NamedTuple):
    """A head of a board: its key in :data:`..heads.HEADS`; the address of the board sorted by it,
    in the other direction if it already is; and how the rows are sorted by it (``aria-sort``)."""

    key: str
    href: str
    direction: str


class Chip(NamedTuple):
    """A filter as a link: it adds the filter, or removes a ``chosen`` one. ``hardware``: how many
    hardware it leaves, null where that is not counted."""

    href: str
    label: str
    hardware: int | None
    chosen: bool


@dataclass(frozen=True)
class LeaderboardPage:
    """``/``: how fast does hardware train? ``heading`` states the finding. ``heads`` sort the
    rows; ``filter_chips``: groups of filters, the chosen ones that have no group first.
    ``narrowed``: a filter is set, and
    ``clear_href`` is the address without any. ``kept``: the parameters of this address that are no
    fields of the form. ``boxes``: the page lists
    at least two different items that can be selected and compared. ``board_hrefs``: the address of
    each board alone, with these filters; ``next_href``: the next rows of the first one;
    ``sections``: the rows of each board; ``scopes``: scopes of energy, if there is a choice.
    ``scores`` and ``chart``: all hardware by score, where all workloads are shown; ``searched``:
    the rows are those of some hardware, with their ranks on the whole board.
    ``figure_asked``: words for a figure that not all results have; ``nobody_yet``: no filter is set
    and there are no results."""

    title: str
    heading: str
    json_href: str
    csv_href: str
    image_href: str
    heads: tuple[SortHead, ...]
    filter_chips: tuple[tuple[Chip, ...], ...]
    metric: Metric
    metrics: tuple[Choice, ...]
    scopes: tuple[Choice, ...]
    baselines: tuple[Choice, ...]
    board_hrefs: tuple[str, ...]
    next_href: str | None
    filters: BoardFilters
    boards: tuple[Board, ...]
    scores: tuple[HardwareScore, ...]
    chart: DotPlot | None
    sections: tuple[tuple[Section, ...], ...]
    workloads: tuple[Choice, ...]
    groups: tuple[Choice, ...]
    frameworks: tuple[str, ...]
    narrowed: bool
    searched: bool
    clear_href: str
    kept: tuple[tuple[str, str], ...]
    figure_asked: str
    any_results: bool
    nobody_yet: bool
    boxes: bool


def leaderboard_page(
    session: Session, filters: BoardFilters, of_operator: str | None = None
) -> LeaderboardPage:
    chosen = filters.model_dump(exclude_defaults=True)
    if filters.workload is None:
        most = min(filters.limit, ROWS_WITH_ALL_WORKLOADS)
        filters = filters.model_copy(update={"limit": most})
    shown, scores, standings = leaderboard.leaderboard(session, filters, of_operator)
    if filters.workload is not None:
        scores = ()
    rows = [row for board in shown for row in board.rows]
    if filters.group == "setup":
        tickable = {row.result_id for row in rows}
    else:
        tickable = {row.hardware_slug for row in rows}
    any_results = any(board.rows or board.unranked for board in shown)
    metric = METRICS.get(filters.rank_by or "throughput", ACCURACY)
    names = [("", "All workloads"), *((workload.name, workload.name) for workload in CATALOGUE)]
    return LeaderboardPage(
        title=filters.workload or "Leaderboard",
        heading=_heading_of_page(filters, metric, standings, scores),
        json_href=address("/api/v1/leaderboard", chosen),
        csv_href=address("/api/v1/leaderboard.csv", chosen),
        image_href=address(
            "/card.png",
            {name: chosen[name] for name in chosen if name not in ("cursor", "limit", "sort")},
        ),
        heads=tuple(_heads(filters, metric, chosen)),
        filter_chips=tuple(_chips(chosen, facets(standings, filters))),
        metric=metric,
        metrics=tuple(
            Choice(
                _with(chosen, "rank_by", "" if name == "throughput" else name),
                one.label,
                (filters.rank_by or "throughput") == name,
            )
            for name, one in METRICS.items()
        ),
        scopes=_scopes(shown, chosen),
        baselines=hardware_choices(session, filters.baseline),
        board_hrefs=tuple(_with(chosen, "workload", board.workload.name) for board in shown),
        next_href=_with(chosen, "cursor", following)
        if (following := shown[0].next_cursor)
        else None,
        filters=filters,
        boards=shown,
        scores=scores,
        chart=_chart(scores, filters.q),
        sections=tuple(_sections(board.rows) for board in shown),
        workloads=tuple(
            Choice(_with(chosen, "workload", name), label, (filters.workload or "") == name)
            for name, label in names
        ),
        groups=tuple(
            Choice(_with(chosen, "group", value), label, (filters.group == "setup") == bool(value))
            for value, label in (("", "Best of each hardware"), ("setup", "Every set-up"))
        ),
        frameworks=tuple(queries.frameworks(session)),
        narrowed=bool(chosen.keys() - VIEW - {"cursor"}),
        searched=bool(filters.q or filters.hardware or filters.family),
        clear_href=address("/", {name: chosen[name] for name in chosen if name in VIEW}),
        kept=tuple(_pairs(chosen)),
        figure_asked=NOT_ALL_HAVE.get(filters.rank_by or "", ""),
        any_results=any_results,
        nobody_yet=not any_results and not chosen.keys() - {"limit"},
        boxes=len(tickable) > 1,
    )


def _heading_of_page(
    filters: BoardFilters,
    metric: Metric,
    standings: Sequence[leaderboard.Standing],
    scores: Sequence[HardwareScore],
) -> str:
    """The finding: the first of a board, or the best score."""
    if filters.workload is not None:
        ranked = [row for row in standings[0].rows if row.rank is not None]
        first = next((row.figure.hardware for row in ranked if row.rank == 1), None)
        finding = metric.first.format(filters.workload)
        return f"{first} {finding}" if first else f"Who {finding}?"
    best = scores[0] if scores else None
    if best is None or best.rank != 1 or best.score.value is None or filters.family:
        return "How fast does it train?"
    return (
        f"{best.hardware} trains {people.times(best.score.value)} times as fast as "
        f"{best.score.baseline}"
    )


def _heads(filters: BoardFilters, metric: Metric, chosen: dict[str, Any]) -> Iterator[SortHead]:
    by_rank = "-accuracy" if metric is ACCURACY else HEADS[metric.value].sort
    current = filters.sort or by_rank
    for key in (*BEFORE, metric.value, *BETWEEN, metric.beside, *AFTER):
        sort = HEADS[key].sort
        if not sort or filters.group == "result":
            yield SortHead(key, "", "")
            continue
        sorted_by = current.removeprefix("-") == sort.removeprefix("-")
        direction = ("descending" if current[0] == "-" else "ascending") if sorted_by else ""
        other = sort.removeprefix("-") if sort[0] == "-" else f"-{sort}"
        wanted = other if current == sort else sort
        href = _with(chosen, "sort", "" if wanted == by_rank else wanted)
        yield SortHead(key, href, direction)


def _chips(chosen: dict[str, Any], counted: Sequence[Facet]) -> Iterator[tuple[Chip, ...]]:
    """The chosen filters that no facet has, then the facets."""
    yield tuple(
        Chip(_without(chosen, name, one), _chip_label(name, one), None, True)
        for name, value in chosen.items()
        if name not in FACETS | VIEW | {"cursor"}
        for one in (value if isinstance(value, list) else [value])
    )
    for facet in counted:
        current = chosen.get(facet.name)
        values = facet.counts if current is None else {current: 0} | facet.counts
        yield tuple(
            Chip(
                _with(chosen, facet.name, "" if value == current else value),
                FAMILIES[value].label if facet.name == "family" else value,
                count,
                value == current,
            )
            for value, count in values.items()
            if len(values) > 1 or value == current
        )


def _chip_label(name: str, value: Any) -> str:
    words = name.replace("_", " ")
    return str(value) if name == "where" else f"{words}: {value}"


def _sections(rows: Sequence[BoardRow]) -> tuple[Section, ...]:
    """A board's rows, which are in the order of their tiers, by tier."""
    parts = [tuple(part) for _, part in groupby(rows, key=lambda row: row.tier or TIERS[-1])]
    return tuple(Section(_heading(part) if len(parts) > 1 else None, part) for part in parts)


def _chart(scores: Sequence[HardwareScore], q: str | None) -> DotPlot | None:
    """All hardware by score. What ``q`` names is ringed."""
    named = (q or "").casefold()
    rows = [
        Row(
            label=one.hardware,
            href=f"/hardware/{one.hardware_slug}",
            values=(
                Value(
                    one.score.value,
                    one.score.value_low,
                    one.score.value_high,
                    vendor(one.hardware),
                    f"{one.hardware}: {people.ratio(one.score.value)}",
                    hollow=not one.score.complete,
                ),
            ),
            text=people.ratio(one.score.value),
            note="" if not one.score.missing else f"{one.score.covered} of {one.score.terms}",
            ringed=bool(named) and named in one.hardware.casefold(),
        )
        for one in scores
        if one.score.value is not None
    ]
    return dot_plot("How many times as fast each hardware trains", rows)


def _heading(rows: Sequence[BoardRow]) -> str:
    """The heading of rows that are of one tier, or published."""
    tiers = {row.tier for row in rows}
    words = [HEADINGS[tier] for tier in TIERS if tier in tiers]
    return ", or ".join([*words, *(["Published elsewhere"] if None in tiers else [])])


def _scopes(shown: Sequence[Board], chosen: dict[str, Any]) -> tuple[Choice, ...]:
    names = dict.fromkeys(scope for board in shown for scope in board.energy_scopes)
    return tuple(
        Choice(
            _with(chosen, "energy_scope", name),
            name,
            all(board.energy_scope == name for board in shown if board.rows),
        )
        for name in names
        if len(names) > 1
    )


def _pairs(chosen: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and values for hidden fields. A filter starts at the first row again."""
    for name, value in chosen.items():
        if name not in FIELDS and name != "cursor":
            for one in value if isinstance(value, list) else [value]:
                yield name, str(one)


def _without(chosen: dict[str, Any], name: str, value: Any) -> str:
    """The address of this page without one value of a parameter."""
    rest = [one for one in chosen[name] if one != value] if isinstance(chosen[name], list) else []
    return address(
        "/",
        {key: chosen[key] for key in chosen if key not in (name, "cursor")}
        | ({name: rest} if rest else {}),
    )


def _with(chosen: dict[str, Any], name: str, value: str) -> str:
    """The address of this page with one changed parameter, at its first row. Another metric has
    other columns, so it is not sorted as before."""
    dropped = (name, "cursor", *(("sort",) if name == "rank_by" else ()))
    others = {key: item for key, item in chosen.items() if key not in dropped}
    return address("/", others | ({name: value} if value else {}))
