"""``/``: the leaderboard."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from sqlmodel import Session

from bench_protocol import format as people
from bench_protocol.catalogue import CATALOGUE

from ...answers import leaderboard, queries
from ...answers.filters import BoardFilters
from ...answers.types import Board, BoardRow, HardwareScore
from ...ranking.owners import TIERS, Tier
from ..dots import DotPlot, Row, Value, dot_plot
from .common import Choice, address, hardware_choices

ROWS_WITH_ALL_WORKLOADS = 10


class Metric(NamedTuple):
    """A metric of a board: the value of ``sort``, the column's heading, the field that sets the
    length of bars, and the heading of the next column."""

    value: str
    words: str
    bar: str
    beside: str


METRICS = {
    "throughput": Metric("throughput", "Samples per second", "fastest_samples_per_second", "Epoch"),
    "time": Metric("time", "Time of an epoch", "fastest_samples_per_second", "Samples"),
    "energy": Metric("energy", "Energy of an epoch", "joules_per_epoch", "Samples"),
    "mfu": Metric("mfu", "MFU, of the vendor's peak", "mfu", "Samples"),
}
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
VENDORS = ("apple", "nvidia", "amd", "intel")
# Parameters that are fields of the form; the form has the others as hidden fields.
FIELDS = frozenset(
    ("q", "device", "framework", "recipe", "batch_size", "precision", "data", "timing", "baseline")
)
# Parameters that say which board is shown and how, not which results: "clear" keeps them.
VIEW = frozenset(("workload", "group", "baseline", "sort", "energy_scope", "limit"))
METRIC_LABELS = {"throughput": "Throughput", "time": "Time", "energy": "Energy", "mfu": "MFU"}


class Section(NamedTuple):
    """Rows of one tier on a board. No heading where all rows are of one tier."""

    heading: str | None
    rows: tuple[BoardRow, ...]


@dataclass(frozen=True)
class LeaderboardPage:
    """``/``: how fast does hardware train? ``narrowed``: a filter is set, and
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
    json_href: str
    csv_href: str
    image_href: str
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
    shown, scores = leaderboard.leaderboard(session, filters, of_operator)
    if filters.workload is not None:
        scores = ()
    rows = [row for board in shown for row in board.rows]
    if filters.group == "setup":
        tickable = {row.result_id for row in rows}
    else:
        tickable = {row.hardware_slug for row in rows}
    any_results = any(board.rows or board.unranked for board in shown)
    names = [("", "All workloads"), *((workload.name, workload.name) for workload in CATALOGUE)]
    return LeaderboardPage(
        title=filters.workload or "Leaderboard",
        json_href=address("/api/v1/leaderboard", chosen),
        csv_href=address("/api/v1/leaderboard.csv", chosen),
        image_href=address(
            "/card.png", {name: chosen[name] for name in chosen if name not in ("cursor", "limit")}
        ),
        metric=METRICS.get(filters.sort or "throughput", METRICS["throughput"]),
        metrics=tuple(
            Choice(
                _with(chosen, "sort", "" if name == "throughput" else name),
                words,
                (filters.sort or "throughput") == name,
            )
            for name, words in METRIC_LABELS.items()
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
        searched=bool(filters.q or filters.hardware),
        clear_href=address("/", {name: chosen[name] for name in chosen if name in VIEW}),
        kept=tuple(_pairs(chosen)),
        figure_asked=NOT_ALL_HAVE.get(filters.sort or "", ""),
        any_results=any_results,
        nobody_yet=not any_results and not chosen.keys() - {"limit"},
        boxes=len(tickable) > 1,
    )


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
                    one.score.low,
                    one.score.high,
                    _vendor(one.hardware),
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


def _vendor(hardware: str) -> str:
    """The class of a vendor's colour."""
    first = hardware.split(maxsplit=1)[0].casefold()
    return first if first in VENDORS else "other"


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


def _with(chosen: dict[str, Any], name: str, value: str) -> str:
    """The address of this page with one changed parameter, at its first row."""
    others = {key: item for key, item in chosen.items() if key not in (name, "cursor")}
    return address("/", others | ({name: value} if value else {}))
