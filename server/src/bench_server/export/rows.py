"""Rows of the exports: every query as rows of one flat type."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from sqlmodel import Session

from ..answers import leaderboard as leaderboards
from ..answers import query_names, stored_results
from ..answers.board_filters import BoardFilters
from ..answers.filters import ResultFilters
from ..answers.prices import Prices
from ..answers.types.comparison import CompareAnswer, ComparedCell, ThingKind
from ..answers.types.leaderboard import FlatBoardRow
from ..answers.types.results import ResultAnswer, result_fields

# Number of rows that the database's driver holds at a time.
PAGE = 100
SPEED_UP = ("speed_up", "speed_up_low", "speed_up_high")


@dataclass(frozen=True)
class FlatRow(FlatBoardRow):
    """A row of a board, without the hardware's other set-ups."""

    baseline_slug: str | None


@dataclass(frozen=True)
class FlatComparedCell(ComparedCell):
    """One compared item in one row. ``overall_...``: of the item over the common rows."""

    thing: str
    thing_kind: ThingKind
    thing_name: str
    workload: str
    common: bool
    overall_speed_up: float | None
    overall_speed_up_low: float | None
    overall_speed_up_high: float | None
    price: float | None
    price_currency: str | None


Rows = Iterator[dict[str, Any]]


def results(session: Session, filters: ResultFilters) -> tuple[type, Rows]:
    """Every result that matches the filters, newest first."""
    query_names.require_known(session, filters)
    rows = session.execute(stored_results.results_query(filters).execution_options(yield_per=PAGE))
    return ResultAnswer, (_dumped(result_fields(*row)) for row in rows)


def leaderboard(
    session: Session, filters: BoardFilters, of_operator: str | None, prices: Prices
) -> tuple[type, Rows]:
    """Every row, without a page limit."""
    return FlatRow, _board_rows(session, filters, of_operator, prices)


def compare(answer: CompareAnswer) -> tuple[type, Rows]:
    return FlatComparedCell, _compared(answer)


def _board_rows(
    session: Session, filters: BoardFilters, of_operator: str | None, prices: Prices
) -> Rows:
    for workload in filters.workloads:
        page = filters.model_copy(update={"workload": workload.name, "limit": PAGE})
        while True:
            (board,) = leaderboards.leaderboard(session, page, of_operator, prices=prices).boards
            for row in board.rows:
                yield {**vars(row), "baseline_slug": board.baseline_slug}
            if board.next_cursor is None:
                break
            page = page.model_copy(update={"cursor": board.next_cursor})


def _compared(answer: CompareAnswer) -> Rows:
    for row in answer.rows:
        for thing, cell in zip(answer.things, row.cells, strict=True):
            if cell is not None:
                yield {
                    **asdict(cell),
                    "thing": thing.id,
                    "thing_kind": thing.kind,
                    "thing_name": thing.name,
                    "workload": row.workload,
                    "common": row.common,
                    **{f"overall_{name}": getattr(thing, name) for name in SPEED_UP},
                    "price": thing.price.amount if thing.price else None,
                    "price_currency": thing.price.currency if thing.price else None,
                }


def _dumped(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: [asdict(item) for item in value] if isinstance(value, tuple) else value
        for name, value in fields.items()
    }
