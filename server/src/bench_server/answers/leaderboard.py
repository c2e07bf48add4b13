"""The leaderboard: query, rank, answer. Page and API show the same answer."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import NamedTuple

from sqlmodel import Session

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.trust.omissions import Omissions

from ..ranking.best import best
from ..ranking.compare import RankedRow, compare, ranked
from ..ranking.figures import Figure
from ..ranking.owners import BACKINGS
from ..ranking.score import SCORED, Bests, score
from . import omissions, query_names, stored_figures, unranked
from .baseline import baseline
from .board_filters import BoardFilters
from .criteria import Search
from .orders import RANK_BY, Order
from .parameters import Part
from .prices import NO_PRICES, Prices
from .specifications import stated_memory
from .types.leaderboard import (
    Board,
    BoardRow,
    FigureAnswer,
    HardwareScore,
    UnrankedRow,
    figure_fields,
    made,
    workload_answer,
)


class Leaderboard(NamedTuple):
    """``scores``: if asked for, the best first; none for boards of machines or energy."""

    boards: tuple[Board, ...]
    scores: tuple[HardwareScore, ...]
    rankings: tuple["Ranking", ...]


class Ranking(NamedTuple):
    """``shown``: the rows that are searched for. By energy the rows are of one of the
    ``energy_scopes``, the most common one if none was asked for."""

    workload: Workload
    rows: Sequence[RankedRow]
    shown: Sequence[RankedRow]
    baseline: Figure | None
    energy_scope: str | None
    energy_scopes: tuple[str, ...]


class Beside(NamedTuple):
    """What a row shows that is no part of its figure: omissions by result, prices, and whether it
    shows further set-ups."""

    omissions: Mapping[str, Omissions]
    prices: Prices
    others: bool


class Page(NamedTuple):
    """The rows that a board shows."""

    rows: Sequence[RankedRow]
    next_cursor: str | None


def leaderboard(
    session: Session,
    filters: BoardFilters,
    of_operator: str | None = None,
    parts: Collection[Part] = (),
    prices: Prices = NO_PRICES,
) -> Leaderboard:
    """Boards of one workload or of all. All figures are read at once. ``filters.baseline`` goes
    before ``of_operator``. Raises InvalidQuery for an unknown name or a cursor without workload."""
    found = rankings(session, filters, of_operator)
    unranked_rows = (
        {}
        if filters.cursor or "unranked" not in parts
        else unranked.unranked_rows(session, filters.workloads, filters.criteria)
    )
    pages = [_page(ranking, filters, prices) for ranking in found]
    shown = [row.figure.evidence.result_id for page in pages for row in page.rows]
    of_results = omissions.of_results(session.connection(), shown)
    beside = Beside(of_results, prices, "others" in parts)
    boards = tuple(
        _board(ranking, page, unranked_rows.get(ranking.workload.digest, ()), beside)
        for ranking, page in zip(found, pages, strict=True)
    )
    scored = filters.group in (None, "hardware") and filters.rank_by != "energy"
    asked = scored and "scores" in parts
    scores = _scores(found, Search(family=filters.family)) if asked else ()
    return Leaderboard(boards, scores, tuple(found))


def rankings(
    session: Session, filters: BoardFilters, of_operator: str | None = None
) -> list[Ranking]:
    """All rows of the boards; see :func:`leaderboard`."""
    query_names.require_known(session, filters)
    baselines, criteria, workloads = {}, filters.criteria, filters.workloads
    of_machines = filters.group == "machine"
    figures = stored_figures.board_figures(session, workloads, filters.ranked_criteria, of_machines)
    relative_to = baseline(session, of_operator, filters.baseline)
    if relative_to.slug is not None:
        of_baseline = criteria.of_baseline(relative_to.slug)
        baselines = stored_figures.board_figures(session, workloads, of_baseline)
    found = []
    for workload in workloads:
        of_workload = figures[workload.digest]
        scopes = _energy_scopes(of_workload) if filters.rank_by == "energy" else ()
        scope = filters.energy_scope or next(iter(scopes), None)
        rows = _ranked(of_workload, scope, filters)
        shown = [row for row in rows if criteria.search.finds(row.figure)]
        counted = relative_to.counted(baselines.get(workload.digest, ()))
        found.append(Ranking(workload, rows, shown, best(counted), scope, scopes))
    return found


def _page(ranking: Ranking, filters: BoardFilters, prices: Prices) -> Page:
    order = Order.of(filters, ranking.baseline, prices)
    rows, cursor = order.page(order.sorted(ranking.shown), filters.limit, filters.cursor)
    if not filters.ranks_rows:
        rows = [replace(row, rank=None) for row in rows]
    return Page(rows, cursor)


def _board(
    ranking: Ranking, page: Page, unranked_rows: tuple[UnrankedRow, ...], beside: Beside
) -> Board:
    base = ranking.baseline
    return Board(
        workload=workload_answer(ranking.workload),
        baseline=base.hardware if base else None,
        baseline_slug=base.hardware_slug if base else None,
        baseline_setup=base.setup.words if base else None,
        rows=tuple(_row(row, base, beside) for row in page.rows),
        row_count=len(ranking.shown),
        ranked_count=sum(row.rank is not None for row in ranking.rows),
        unranked=unranked_rows,
        energy_scope=ranking.energy_scope,
        energy_scopes=ranking.energy_scopes,
        next_cursor=page.next_cursor,
    )


def _scores(rankings: Sequence[Ranking], family: Search) -> tuple[HardwareScore, ...]:
    """Over the scored workloads of these boards, over all if none is. A rank needs a place on each
    of them, else the best rank could be had by measuring one workload alone."""
    names = [ranking.workload.name for ranking in rankings]
    scored = [name for name in names if name in SCORED] or names
    bests: defaultdict[tuple[str, str, bool], Bests] = defaultdict(dict)
    baselines: Bests = {}
    found: set[str] = set()
    for ranking in rankings:
        for row in ranking.rows:
            figure = best([row.figure, *row.others])
            if row.figure.held or figure is None:
                continue
            key = (figure.hardware_slug, figure.hardware, figure.published)
            bests[key][ranking.workload.name] = figure
            if family.finds(figure):
                found.add(figure.hardware_slug)
        if ranking.baseline:
            baselines[ranking.workload.name] = ranking.baseline
    scores = [
        HardwareScore(name, slug, published, None, score(of_hardware, baselines, scored))
        for (slug, name, published), of_hardware in bests.items()
    ]
    ordered = sorted((one for one in scores if one.score.value), key=_score_order)
    ranks = count(1)
    placed = [replace(one, rank=next(ranks) if one.score.complete else None) for one in ordered]
    return tuple(one for one in placed if one.hardware_slug in found)


def _score_order(one: HardwareScore) -> tuple[bool, float, str]:
    return bool(one.score.missing), -(one.score.value or 0), one.hardware_slug


def _energy_scopes(figures: Iterable[Figure]) -> tuple[str, ...]:
    counted = Counter(figure.evidence.energy_scope for figure in figures)
    return tuple(sorted(filter(None, counted), key=lambda scope: (-counted[scope], scope)))


def _ranked(
    figures: Sequence[Figure], energy_scope: str | None, filters: BoardFilters
) -> list[RankedRow]:
    value = RANK_BY[filters.ranked_by]
    enough = BACKINGS[: BACKINGS.index(filters.backing) + 1] if filters.backing else ()
    keyed = [
        (value(figure), figure.id, figure)
        for figure in figures
        if energy_scope in (None, figure.evidence.energy_scope)
        if not enough or figure.backing in enough
    ]
    ordered = sorted(key for key in keyed if key[0] is not None)
    return ranked([figure for *_, figure in ordered], one_each=filters.group != "setup")


def _row(row: RankedRow, base: Figure | None, beside: Beside) -> BoardRow:
    """The baseline's own row has no range."""
    workload = workload_named(row.figure.subject.workload)
    found = compare(row.figure, base) if base else None
    slug, name = row.figure.hardware_slug, row.figure.hardware
    price = beside.prices.of(slug, slug, name)
    bounded = found if base and row.figure.id != base.id else None
    others = (
        made(FigureAnswer, figure_fields(other, workload))
        for other in (row.others if beside.others else ())
    )
    return made(
        BoardRow,
        {
            **figure_fields(row.figure, workload),
            "workload": workload.name,
            "rank": row.rank,
            "setups": row.setups,
            "speed_up": found.speed_up if found else None,
            "speed_up_low": bounded.speed_up_low if bounded else None,
            "speed_up_high": bounded.speed_up_high if bounded else None,
            "speed_up_range_of": bounded.speed_up_range_of if bounded else None,
            "mixed_timing": bool(found and found.mixed_timing),
            "mixed_data": bool(found and found.mixed_data),
            "omissions": beside.omissions.get(row.figure.evidence.result_id),
            "price": price.amount if price else None,
            "price_currency": price.currency if price else None,
            "memory_bytes": stated_memory(name),
            "others": tuple(others),
        },
    )
