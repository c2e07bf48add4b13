"""``/``: the leaderboard."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from sqlmodel import Session

from bench_protocol.base import format as people
from bench_protocol.catalogue.catalogue import CATALOGUE

from ...answers import leaderboard, query_names
from ...answers.facets import facets
from ...answers.filters import BoardFilters
from ...answers.types import Board, BoardRow, HardwareScore
from ...ranking.owners import TIERS, Tier
from ..dots import DotPlot, Row, Value, dot_plot
from .board_finding import contested, finding
from .board_links import (
    ACCURACY,
    METRICS,
    VIEW,
    Chip,
    Metric,
    SortHead,
    chips,
    heads,
    hidden_fields,
    with_value,
)
from .common import Choice, address, hardware_choices, vendor

ROWS_WITH_ALL_WORKLOADS = 10
# Rows of the chart that are not folded away.
UNFOLDED_ROWS = 20


NOT_ALL_HAVE = {
    "energy": "contains its energy",
    "mfu": "has hardware with a known peak",
    "accuracy": "has an accuracy",
}
HEADINGS: dict[Tier, str] = {
    "confirmed": "Measured by two or more confirmed owners",
    "several": "Measured by three or more established owners",
    "provisional": (
        "Provisional: measured by one confirmed owner, or by fewer than three established ones"
    ),
    "new": "Provisional: measured by new owners alone",
}


class Section(NamedTuple):
    """Rows of one tier on a board. No heading where all rows are of one tier."""

    heading: str | None
    rows: tuple[BoardRow, ...]


@dataclass(frozen=True)
class LeaderboardPage:
    """``/``: how fast does hardware train? ``heading`` states the finding; ``contested``: which
    hardware with less evidence has a better figure, in words. ``heads`` sort the
    rows; ``filter_chips``: groups of filters, the chosen ones that have no group first.
    ``narrowed``: a filter is set, and
    ``clear_href`` is the address without any. ``kept``: the parameters of this address that are no
    fields of the form. ``boxes``: the page lists
    at least two different items that can be selected and compared. ``board_hrefs``: the address of
    each board alone, with these filters; ``next_href``: the next rows of the first one;
    ``sections``: the rows of each board; ``all_short``: whether all their timings are short.
    ``scopes``: scopes of energy, if there is a choice.
    ``chart``: all hardware by score, where all workloads are shown and hardware other than the
    baseline has a score; ``chart_later``: one hardware model alone has a score on the whole board.
    ``searched``: the rows are those of some hardware, with their ranks on the whole board.
    ``figure_asked``: words for a figure that not all results have; ``nobody_yet``: no filter is set
    and there are no results."""

    title: str
    heading: str
    contested: str
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
    chart: DotPlot | None
    chart_later: bool
    sections: tuple[tuple[Section, ...], ...]
    all_short: tuple[bool, ...]
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
    whole = not chosen.keys() - {"limit"}
    metric = METRICS.get(filters.rank_by or "throughput", ACCURACY)
    names = [("", "All workloads"), *((workload.name, workload.name) for workload in CATALOGUE)]
    return LeaderboardPage(
        title=filters.workload or "Leaderboard",
        heading=finding(filters, metric, standings, scores, any(board.rows for board in shown)),
        contested=contested(filters, metric, standings),
        json_href=address("/api/v1/leaderboard", chosen),
        csv_href=address("/api/v1/leaderboard.csv", chosen),
        image_href=address(
            "/card.png",
            {name: chosen[name] for name in chosen if name not in ("cursor", "limit", "sort")},
        ),
        heads=tuple(heads(filters, metric, chosen)),
        filter_chips=tuple(chips(chosen, facets(standings, filters.criteria.search))),
        metric=metric,
        metrics=tuple(
            Choice(
                with_value(chosen, "rank_by", "" if name == "throughput" else name),
                one.label,
                (filters.rank_by or "throughput") == name,
            )
            for name, one in METRICS.items()
        ),
        scopes=_scopes(shown, chosen),
        baselines=hardware_choices(session, filters.baseline),
        board_hrefs=tuple(with_value(chosen, "workload", board.workload.name) for board in shown),
        next_href=with_value(chosen, "cursor", following)
        if (following := shown[0].next_cursor)
        else None,
        filters=filters,
        boards=shown,
        chart=_chart(scores, filters.q),
        chart_later=whole and len({one.hardware_slug for one in scores}) == 1,
        sections=tuple(_sections(board.rows) for board in shown),
        all_short=tuple(_all_short(board.rows) for board in shown),
        workloads=tuple(
            Choice(with_value(chosen, "workload", name), label, (filters.workload or "") == name)
            for name, label in names
        ),
        groups=tuple(
            Choice(
                with_value(chosen, "group", value), label, (filters.group == "setup") == bool(value)
            )
            for value, label in (("", "Best of each hardware"), ("setup", "Every set-up"))
        ),
        frameworks=tuple(query_names.frameworks(session)),
        narrowed=bool(chosen.keys() - VIEW - {"cursor"}),
        searched=bool(filters.criteria.search),
        clear_href=address("/", {name: chosen[name] for name in chosen if name in VIEW}),
        kept=tuple(hidden_fields(chosen)),
        figure_asked=NOT_ALL_HAVE.get(filters.rank_by or "", ""),
        any_results=any_results,
        nobody_yet=not any_results and whole,
        boxes=len(tickable) > 1,
    )


def _sections(rows: Sequence[BoardRow]) -> tuple[Section, ...]:
    """A board's rows, which are in the order of their tiers, by tier."""
    parts = [tuple(part) for _, part in groupby(rows, key=lambda row: row.tier or TIERS[-1])]
    return tuple(Section(_heading(part) if len(parts) > 1 else None, part) for part in parts)


def _all_short(rows: Sequence[BoardRow]) -> bool:
    """Whether all timings are short; published figures were not timed here."""
    measured = [one for row in rows if not row.published for one in (row, *row.others)]
    return {one.timing for one in measured} == {"short"}


def _chart(scores: Sequence[HardwareScore], q: str | None) -> DotPlot | None:
    """All hardware by score; None if only the baseline has one. What ``q`` names is ringed."""
    if all(_is_baseline(one) for one in scores):
        return None
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
            note=_note(one),
            ringed=bool(named) and named in one.hardware.casefold(),
            pinned=_is_baseline(one),
        )
        for one in scores
        if one.score.value is not None
    ]
    baseline = scores[0].score.baseline
    hollow = any(value.hollow for row in rows for value in row.values)
    key = "; hollow: provisional or incomplete" if hollow else ""
    return dot_plot(f"Speed in multiples of {baseline}{key}", rows, UNFOLDED_ROWS)


def _is_baseline(one: HardwareScore) -> bool:
    return one.hardware_slug == one.score.baseline_slug


def _note(one: HardwareScore) -> str:
    if _is_baseline(one):
        return "baseline"
    return f"{one.score.covered} of {one.score.terms}" if one.score.missing else ""


def _heading(rows: Sequence[BoardRow]) -> str:
    """The heading of rows that are of one tier, or published."""
    tiers = {row.tier for row in rows}
    words = [HEADINGS[tier] for tier in TIERS if tier in tiers]
    if None in tiers:
        words.append("published elsewhere" if words else "Published elsewhere")
    return ", or ".join(words)


def _scopes(shown: Sequence[Board], chosen: dict[str, Any]) -> tuple[Choice, ...]:
    names = dict.fromkeys(scope for board in shown for scope in board.energy_scopes)
    return tuple(
        Choice(
            with_value(chosen, "energy_scope", name),
            name,
            all(board.energy_scope == name for board in shown if board.rows),
        )
        for name in names
        if len(names) > 1
    )
