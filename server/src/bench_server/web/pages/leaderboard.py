"""``/``: boards, of one workload or of all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlmodel import Session

from ...answers import leaderboard
from ...answers.board_filters import BoardFilters
from ...answers.parameters import PARTS, Part
from ...answers.prices import NO_PRICES, Prices
from ...answers.types.leaderboard import Board
from ..shared_marks import SharedMarks, most_frequent_level, shared_marks
from .board_controls import Controls, controls
from .board_finding import finding, rests_on
from .board_links import METRICS, Metric, SortHead, heads, with_value
from .common import Page, address

ROWS_WITH_ALL_WORKLOADS = 10
# There may be any number of machines.
ROWS_OF_MACHINES = 50
NOT_ALL_HAVE = {"energy": "contains its energy", "mfu": "has hardware with a known peak"}

BOARD_PARTS: tuple[Part, ...] = ("others", "unranked")
# ``nobody_yet``: no filter is set and there are no results.
Results = Literal["some", "none_here", "nobody_yet"]


@dataclass(frozen=True)
class ShownBoard:
    """One board. ``href``: this board alone, with these filters; ``next_href``: its next rows."""

    board: Board
    href: str
    next_href: str | None
    common: SharedMarks


@dataclass(frozen=True)
class Boards:
    """``boxes``: at least two different items can be compared; ``searched``: the rows are those of
    some hardware; ``figure_asked``: words for a figure that not all results have."""

    shown: tuple[ShownBoard, ...]
    not_measured: tuple[str, ...]
    heads: tuple[SortHead, ...]
    metric: Metric
    boxes: bool
    searched: bool
    figure_asked: str


@dataclass(frozen=True)
class LeaderboardPage(Page):
    """``/``: how fast does hardware train? ``rests_on``: who measured the first, in words."""

    csv_href: str
    image_href: str
    heading: str
    rests_on: str
    filters: BoardFilters
    controls: Controls
    results: Results
    boards: Boards


def leaderboard_page(
    session: Session,
    filters: BoardFilters,
    of_operator: str | None = None,
    prices: Prices = NO_PRICES,
) -> LeaderboardPage:
    chosen = filters.model_dump(exclude_defaults=True)
    most = filters.limit if filters.is_of_hardware or "limit" in chosen else ROWS_OF_MACHINES
    if filters.workload is None:
        most = min(most, ROWS_WITH_ALL_WORKLOADS)
    filters = filters.model_copy(update={"limit": most})
    boards, scores, rankings = leaderboard.leaderboard(
        session, filters, of_operator, PARTS if filters.is_of_scores else BOARD_PARTS, prices
    )
    metric = METRICS[filters.ranked_by]
    whole = not chosen.keys() - {"limit"}
    of_card = {name: chosen[name] for name in chosen if name not in ("cursor", "limit", "sort")}
    results: Results = "nobody_yet" if whole else "none_here"
    if any(board.rows or board.unranked for board in boards):
        results = "some"
    return LeaderboardPage(
        title=filters.workload or "Leaderboard",
        json_href=address("/api/v1/leaderboard", {**chosen, "include": ",".join(BOARD_PARTS)}),
        csv_href=address("/api/v1/leaderboard.csv", chosen),
        image_href=address("/card.png", of_card),
        heading=finding(filters, metric, rankings, scores, any(board.rows for board in boards)),
        rests_on=rests_on(rankings, filters),
        filters=filters,
        controls=controls(session, filters, chosen, boards, rankings),
        results=results,
        boards=_boards(boards, filters, metric, chosen),
    )


def _boards(
    boards: Sequence[Board], filters: BoardFilters, metric: Metric, chosen: dict[str, Any]
) -> Boards:
    rows = [row for board in boards for row in board.rows]
    by_setup = filters.group == "setup"
    shown = [one for one in boards if one.rows or one.unranked or filters.workload]
    without = set() if any(row.speed_up for row in rows) else {"speed-up"}
    return Boards(
        shown=tuple(_shown(board, chosen) for board in shown),
        not_measured=tuple(board.workload.name for board in boards if board not in shown),
        heads=tuple(one for one in heads(filters, metric, chosen) if one.key not in without),
        metric=metric,
        boxes=len({row.result_id if by_setup else row.hardware_slug for row in rows}) > 1,
        searched=bool(filters.criteria.search),
        figure_asked=NOT_ALL_HAVE.get(filters.rank_by or "", ""),
    )


def _shown(board: Board, chosen: dict[str, Any]) -> ShownBoard:
    following = board.next_cursor
    measured = [one for row in board.rows if not row.published for one in (row, *row.others)]
    return ShownBoard(
        board=board,
        href=with_value(chosen, "workload", board.workload.name),
        next_href=with_value(chosen, "cursor", following) if following else None,
        common=shared_marks(measured, most_frequent_level(board.rows)),
    )
