"""Cards of pages: which bars they have, and the rank.

A card about one result or machine compares the same framework and recipe. A card about hardware or
a board has each hardware at its best, and names the set-up at each bar.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlmodel import Session

from bench_protocol.base import format as people
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.workloads import Workload

from ..answers import hardware, leaderboard, machines, stored_results
from ..answers.cell_figures import CellFigure
from ..answers.filters import BoardFilters
from ..answers.prices import NO_PRICES
from ..answers.types import BoardRow, CompareAnswer
from ..errors import NotFound
from . import cards
from .cards import CARD_BARS, Card, CardBar

WORKLOADS = {workload.name: workload for workload in CATALOGUE}
# What makes two figures of one workload the same set-up on different hardware.
SAME = ("framework", "recipe", "batch_size", "precision", "data", "timing")


def result_card(session: Session, result_id: str) -> Card:
    """The result beside other hardware in its set-up. Raises NotFound if there is no such
    result."""
    _, row = stored_results.result_with_id(session, result_id)
    setup = f"{row.framework} {row.recipe}"
    line = f"{row.workload}, {setup}, batch {row.batch_size:,}"
    if row.samples_per_second is None or row.status == "failed":
        return Card(row.hardware, line, (), row.unranked_reason or "no figure")
    own = CardBar(row.hardware, "", row.samples_per_second, row.device, own=True)
    rows = _board(session, row.workload, {name: getattr(row, name) for name in SAME})
    value = f"{people.rate(row.samples_per_second)} samples/s"
    foot = f"{value}, epoch {people.nanoseconds(row.epoch_ns or 0)}"
    if row.rankable:
        foot = f"{foot}, trust level {row.trust_level}"
        line = f"{line}: {_place(rows, row.hardware_slug)}"
    return Card(row.hardware, line, _bars(own, _others(rows, row.hardware_slug)), foot)


def machine_card(session: Session, machine_id: str) -> Card:
    """The figure of a machine's first place beside other hardware in its set-up. Raises NotFound if
    it has none."""
    figures = machines.machine_figures(session, machine_id)
    answer, shown = machines.answer_of(session, figures, NO_PRICES), machines.shown_figure(figures)
    rows = _board(session, shown.workload, {name: getattr(shown, name) for name in SAME})
    setup = f"{shown.framework} {shown.recipe}"
    own = CardBar(f"machine {machine_id[:8]}", "", shown.samples_per_second, shown.device, own=True)
    others = [row for row in rows if row.hardware_slug != shown.hardware_slug]
    slower = sum(row.samples_per_second < shown.samples_per_second for row in others)
    line = f"{shown.workload}, {setup}, batch {shown.batch_size:,}"
    foot = f"faster than {slower} of {len(others)} other hardware in this set-up"
    if not others:
        foot = "no other hardware is measured in this set-up yet"
    place = next((place for place in answer.places if place.workload == shown.workload), None)
    if place is not None and place.rank:
        line = f"{line}: its hardware is {people.ordinal(place.rank)} of {place.ranked}"
    return Card(f"{answer.name}, machine {machine_id[:8]}", line, _bars(own, _some(others)), foot)


def hardware_card(session: Session, slug: str) -> Card:
    """A hardware beside others, each at its best, in its first workload. Raises NotFound if it has
    no figure."""
    answer = hardware.hardware(session, slug)
    first = _first(answer.figures)
    rows = _board(session, first.workload, {})
    mine = next((row for row in rows if row.hardware_slug == slug), None)
    line = f"{first.workload}, each hardware at its best"
    if mine is None:  # it has no figure at the default batch size
        return Card(answer.name, line, (), f"{len(answer.figures)} figures in other set-ups")
    others = _others(rows, slug)
    line = f"{line}: {_place(rows, slug)}" if mine.rank else line
    bars = _bars(_bar(mine, own=True), others)
    return Card(answer.name, line, bars, f"{people.rate(mine.samples_per_second)} samples/s")


def compare_card(session: Session, answer: CompareAnswer, of_operator: str | None = None) -> Card:
    """A comparison, with the rank by score of each hardware that has one.

    Args:
        of_operator: see :func:`.leaderboard.leaderboard`.
    """
    if all(thing.kind != "hardware" for thing in answer.things):
        return cards.compare_card(answer, {})
    found = leaderboard.leaderboard(session, BoardFilters.model_validate({}), of_operator)
    ranked = [one for one in found.scores if one.rank]
    places = {
        one.hardware_slug: f"{people.ordinal(one.rank)} of {len(ranked)} by score"
        for one in ranked
        if one.rank
    }
    return cards.compare_card(answer, places)


def board_card(session: Session, filters: BoardFilters) -> Card:
    """The first rows of a board, in its order; of the first one with rows if no workload is chosen.

    Raises:
        InvalidQuery: a name in the filters is unknown.
    """
    shown = filters.model_copy(update={"limit": CARD_BARS, "cursor": None})
    boards = leaderboard.leaderboard(session, shown).boards
    board = next((board for board in boards if board.rows), boards[0])
    workload = board.workload
    title = "How fast does it train?" if filters.workload is None else workload.name
    rows = "set-ups" if filters.group == "setup" else "hardware, each at its best"
    line = rows if filters.workload else f"{workload.name}: {rows}"
    bars = _bars(None, [_bar(row) for row in board.rows])
    bars = tuple(
        replace(bar, label=f"{row.rank}. {bar.label}" if row.rank else bar.label)
        for row, bar in zip(board.rows, bars, strict=True)
    )
    of = f" of {board.row_count:,}" if board.row_count else ""
    foot = f"the first {len(bars)}{of} on the board" if bars else "nobody has measured it yet"
    return Card(title, line, bars, foot)


def _first(figures: Sequence[CellFigure]) -> CellFigure:
    """The figure that a card shows: the fastest at its workload's default batch size, of the first
    workload that has one."""
    if not figures:
        raise NotFound("no figure of a workload that this server knows", field="slug")
    usual = (f for f in figures if f.batch_size == WORKLOADS[f.workload].batch_size)
    return next(usual, figures[0])


def _board(session: Session, name: str, same: dict[str, object]) -> tuple[BoardRow, ...]:
    """Every row of a workload's board in a set-up, or of its usual board."""
    workload: Workload | None = WORKLOADS.get(name)
    if workload is None:
        return ()
    filters = BoardFilters.model_validate(same | {"limit": 500})
    return leaderboard.board(session, workload, filters).rows


def _place(rows: Sequence[BoardRow], slug: str) -> str:
    """``15th of 47 hardware``."""
    ranked = [row for row in rows if row.rank]
    mine = next((row.rank for row in ranked if row.hardware_slug == slug), None)
    return f"{people.ordinal(mine)} of {len(ranked)} hardware" if mine else "not ranked"


def _others(rows: Sequence[BoardRow], slug: str) -> list[CardBar]:
    return _some([row for row in rows if row.hardware_slug != slug])


def _some(rows: Sequence[BoardRow]) -> list[CardBar]:
    """Some rows, spread from the first to the last."""
    most = CARD_BARS - 1
    if len(rows) <= most:
        return [_bar(row) for row in rows]
    places = [round(n * (len(rows) - 1) / (most - 1)) for n in range(most)]
    return [_bar(rows[place]) for place in places]


def _bar(row: BoardRow, own: bool = False) -> CardBar:
    setup = f"{row.framework} {row.recipe}"
    return CardBar(row.hardware, "", row.samples_per_second, row.device, setup, own)


def _bars(own: CardBar | None, others: Sequence[CardBar]) -> tuple[CardBar, ...]:
    """Bars, whose ``share`` is a rate until here, in order of speed where one is ``own``. A set-up
    is named where the bars are of several."""
    every = list(others)
    if own is not None:
        every = sorted([*others, own], key=lambda bar: -bar.share)
    most = max((bar.share for bar in every), default=1.0)
    named = (own is None or own.setup is not None) and len({bar.setup for bar in every}) > 1
    return tuple(
        CardBar(
            bar.label,
            f"{people.rate(bar.share)}/s",
            bar.share / most,
            bar.kind,
            bar.setup if named else None,
            bar.own,
        )
        for bar in every
    )
