"""``/``: the leaderboard."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlmodel import Session

from ...answers import leaderboard
from ...answers.board_filters import BoardFilters
from ...answers.facets import facets
from ...answers.parameters import PARTS, Part
from ...answers.types.leaderboard import Board
from ..dots import DotPlot
from .board_chart import score_chart
from .board_controls import Controls, controls
from .board_finding import finding, rests_on
from .board_links import ACCURACY, METRICS, Metric, SortHead, heads, with_value
from .common import address

ROWS_WITH_ALL_WORKLOADS = 10
NOT_ALL_HAVE = {
    "energy": "contains its energy",
    "mfu": "has hardware with a known peak",
    "accuracy": "has an accuracy",
}

# ``nobody_yet``: no filter is set and there are no results.
Results = Literal["some", "none_here", "nobody_yet"]


@dataclass(frozen=True)
class ShownBoard:
    """One board. ``href``: this board alone, with these filters; ``next_href``: its next rows;
    ``only_short``: all timings of its rows are short."""

    board: Board
    href: str
    next_href: str | None
    only_short: bool


@dataclass(frozen=True)
class Boards:
    """The boards. ``heads`` sort the rows; ``boxes``: at least two different items can be selected
    and compared; ``searched``: the rows are those of some hardware, with their ranks on the whole
    board; ``figure_asked``: words for a figure that not all results have."""

    shown: tuple[ShownBoard, ...]
    heads: tuple[SortHead, ...]
    metric: Metric
    boxes: bool
    searched: bool
    figure_asked: str


@dataclass(frozen=True)
class LeaderboardPage:
    """``/``: how fast does hardware train? ``heading`` states the finding; ``rests_on``: that
    it rests on one owner, in words; ``chart``: all hardware by score."""

    title: str
    json_href: str
    csv_href: str
    image_href: str
    heading: str
    rests_on: str
    filters: BoardFilters
    chart: DotPlot | None
    controls: Controls
    results: Results
    boards: Boards


def leaderboard_page(
    session: Session, filters: BoardFilters, of_operator: str | None = None
) -> LeaderboardPage:
    chosen = filters.model_dump(exclude_defaults=True)
    if filters.workload is None:
        most = min(filters.limit, ROWS_WITH_ALL_WORKLOADS)
        filters = filters.model_copy(update={"limit": most})
    parts: tuple[Part, ...] = PARTS if filters.workload is None else ("others", "unranked")
    boards, scores, rankings = leaderboard.leaderboard(session, filters, of_operator, parts)
    metric = METRICS.get(filters.ranked_by, ACCURACY)
    whole = not chosen.keys() - {"limit"}
    of_card = {name: chosen[name] for name in chosen if name not in ("cursor", "limit", "sort")}
    results: Results = "nobody_yet" if whole else "none_here"
    if any(board.rows or board.unranked for board in boards):
        results = "some"
    return LeaderboardPage(
        title=filters.workload or "Leaderboard",
        json_href=address("/api/v1/leaderboard", {**chosen, "include": ",".join(parts)}),
        csv_href=address("/api/v1/leaderboard.csv", chosen),
        image_href=address("/card.png", of_card),
        heading=finding(filters, metric, rankings, scores, any(board.rows for board in boards)),
        rests_on=rests_on(rankings),
        filters=filters,
        chart=score_chart(scores, filters.q),
        controls=controls(
            session, filters, chosen, boards, facets(rankings, filters.criteria.search)
        ),
        results=results,
        boards=_boards(boards, filters, metric, chosen),
    )


def _boards(
    boards: Sequence[Board], filters: BoardFilters, metric: Metric, chosen: dict[str, Any]
) -> Boards:
    rows = [row for board in boards for row in board.rows]
    by_setup = filters.group == "setup"
    return Boards(
        shown=tuple(_shown(board, chosen) for board in boards),
        heads=tuple(heads(filters, metric, chosen)),
        metric=metric,
        boxes=len({row.result_id if by_setup else row.hardware_slug for row in rows}) > 1,
        searched=bool(filters.criteria.search),
        figure_asked=NOT_ALL_HAVE.get(filters.rank_by or "", ""),
    )


def _shown(board: Board, chosen: dict[str, Any]) -> ShownBoard:
    following = board.next_cursor
    # Published figures were not timed here.
    measured = [one for row in board.rows if not row.published for one in (row, *row.others)]
    return ShownBoard(
        board=board,
        href=with_value(chosen, "workload", board.workload.name),
        next_href=with_value(chosen, "cursor", following) if following else None,
        only_short={one.timing for one in measured} == {"short"},
    )
