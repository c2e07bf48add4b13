"""What the pictures for embedding show: cards for link previews, and badges.

A card has the finding of the page that it previews as its title. A card of one result or machine
compares one set-up; one of a hardware or a board has each hardware at its best, by score where the
page shows the scores. Set-ups are named where a card has several.
"""

from collections.abc import Sequence
from typing import Any

from sqlmodel import Session

from bench_protocol.base import format as people
from bench_protocol.catalogue import speeds
from bench_protocol.catalogue.catalogue import CATALOGUE

from ..answers import (
    hardware,
    leaderboard,
    machine_places,
    machines,
    stored_figures,
    stored_results,
)
from ..answers.board_filters import BoardFilters
from ..answers.cell_figures import CellFigure
from ..answers.parameters import Part
from ..answers.prices import NO_PRICES
from ..answers.types.comparison import CompareAnswer
from ..answers.types.leaderboard import BoardRow, HardwareScore
from ..errors import NotFound
from ..ranking.held import WORDS as HELD
from ..ranking.score import best_of
from . import short_names
from .drawn_cards import Bar, Card, badge
from .pages import board_form
from .pages.board_finding import finding
from .pages.board_links import METRICS
from .pages.compare import heading
from .pages.machine import finding as machine_finding
from .pages.machine import shown_figure as machine_shown

MOST_BARS = 6
WORKLOADS = {workload.name: workload for workload in CATALOGUE}
# Fields that make two figures of one workload the same set-up on different hardware.
SAME = ("framework", "recipe", "batch_size", "precision", "data", "timing")
MOST_LABEL = 30
WAITS = "it has no rank, and nothing rests on it, until another owner measures it"

ROWS = {"hardware": "hardware, each at its best", "setup": "set-ups", "machine": "machines"}


def result_card(session: Session, result_id: str) -> Card:
    """The result beside other hardware in its set-up. Raises NotFound without a result."""
    _, row = stored_results.result_with_id(session, result_id)
    if row.samples_per_second is None or row.status == "failed":
        return Card(row.hardware, _setup(row), (), row.unranked_reason or "no figure")
    if not stored_figures.free(session, [row]):
        return Card(f"{row.hardware} is {HELD}", _setup(row), (), WAITS)
    rows = _board(session, row.workload, {name: getattr(row, name) for name in SAME})
    speed = speeds.words(row.samples_per_second, row.workload)
    title = f"{row.hardware} trains {row.workload} at {speed}"
    foot = f"epoch {people.nanoseconds(row.epoch_ns or 0)}"
    place = ""
    if row.rankable:
        foot += f", trust level {row.trust_level}"
        place = f": {_place(rows, row.hardware_slug)}"
    bars = _beside(_bar(row, own=True), rows, row.hardware_slug)
    return Card(title, f"{_setup(row)}{place}", bars, foot)


def machine_card(session: Session, machine_id: str) -> Card:
    """Its first place, beside other hardware in its set-up. Raises NotFound without a figure."""
    figures = machines.machine_figures(session, machine_id)
    answer = machines.answer_of(session, figures, NO_PRICES)
    shown = machine_shown(answer, figures)
    machine = f"machine {machine_id[:8]}"
    if not stored_figures.free(session, [shown]):
        return Card(f"{answer.name} is {HELD}", f"{machine}: {_setup(shown)}", (), WAITS)
    rows = _board(session, shown.workload, {name: getattr(shown, name) for name in SAME})
    place = next((place for place in answer.places if place.workload == shown.workload), None)
    where = ""
    if place is not None and place.rank and not place.alone:
        where = f": its hardware is {people.ordinal(place.rank)} of {place.ranked} in any set-up"
    bars = _beside(_bar(shown, own=True)._replace(label=machine), rows, shown.hardware_slug)
    foot = f"{speeds.words(shown.samples_per_second, shown.workload)}, {machine}"
    return Card(machine_finding(answer), f"{_setup(shown)}{where}", bars, foot)


def hardware_card(session: Session, slug: str) -> Card:
    """A hardware beside others in its first workload. Raises NotFound if it has no figure."""
    answer = hardware.hardware(session, slug)
    shown = _shown(answer)
    workload = shown.workload
    rows = _board(session, workload, {})
    line = f"{workload}, each hardware at its best"
    mine = next((row for row in rows if row.hardware_slug == slug), None)
    if mine is None:  # it has no figure at the default batch size
        if shown.held:
            return Card(f"{answer.name} is {HELD}", line, (), WAITS)
        return Card(answer.name, line, (), f"{len(answer.figures)} figures in other set-ups")
    title = f"{answer.name}: {_place(rows, slug)} in {workload}" if mine.rank else answer.name
    bars = _beside(_bar(mine, own=True), rows, slug)
    return Card(title, line, bars, speeds.words(mine.samples_per_second, workload))


def board_card(session: Session, filters: BoardFilters, of_operator: str | None = None) -> Card:
    """The best scores where the page has their chart, else the first rows of a board; of the
    first one with rows if no workload is chosen. Raises InvalidQuery if a name is unknown."""
    shown = filters.model_copy(update={"limit": MOST_BARS, "cursor": None})
    parts: tuple[Part, ...] = () if filters.workload else ("scores",)
    boards, scores, rankings = leaderboard.leaderboard(session, shown, of_operator, parts)
    metric = METRICS[filters.ranked_by]
    title = finding(shown, metric, rankings, scores, any(board.rows for board in boards))
    if scores:
        return _score_card(title, filters, scores)
    board = next((board for board in boards if board.rows), boards[0])
    rows = ROWS[filters.group or "hardware"]
    where = board.workload.name
    line = ": ".join(filter(None, (board_form.words(filters), where, rows)))
    bars = [
        bar._replace(label=_ranked(row.rank, row.hardware)) if row.rank else bar
        for row in stored_figures.free(session, board.rows)
        if not row.held
        for bar in (_bar(row),)
    ]
    count = f"the first {len(bars)} of {board.row_count:,} on the board"
    foot = count if bars else "nobody has measured it yet"
    return Card(title, line, _noted(bars), foot)


def _score_card(title: str, filters: BoardFilters, scores: Sequence[HardwareScore]) -> Card:
    best = scores[:MOST_BARS]
    bars = [
        Bar(
            _ranked(one.rank, one.hardware),
            one.score.value or 0,
            people.ratio(one.score.value or 0),
            "other",
            f"in {one.score.covered} of {one.score.terms} workloads" if one.score.missing else None,
        )
        for one in best
    ]
    asked = board_form.words(filters)
    line = f"{asked + ': ' if asked else ''}speed in multiples of {best[0].score.baseline}"
    foot = f"the best {len(bars)} of {len(scores):,} by score, each hardware at its best"
    return Card(title, line, bars, foot)


def compare_card(answer: CompareAnswer) -> Card:
    """The geometric means of a comparison, under its finding."""
    first = answer.things[0]
    bars = [
        Bar(
            short_names.name(thing.name, MOST_LABEL),
            thing.speed_up,
            people.ratio(thing.speed_up),
            "baseline" if thing is first else "other",
            None,
        )
        for thing in answer.things
        if thing.speed_up is not None
    ]
    line = f"geometric mean of {answer.common_cells} of {answer.all_cells} workloads and set-ups"
    alone = any(thing.scope == "machines" for thing in answer.things)
    foot = f"{first.name} is 1×; more is faster{'; one machine a side' * alone}"
    if not bars and any(any(row.held) for row in answer.rows):
        foot = WAITS
    return Card(heading(answer), line, bars[:MOST_BARS], foot)


def hardware_badge(session: Session, slug: str, of_operator: str | None = None) -> str:
    """The badge of a hardware: its score in multiples of the baseline, without one its rate. Raises
    NotFound if it has no figures."""
    answer = hardware.hardware(session, slug, of_operator)
    shown = _shown(answer)
    words, found = HELD if shown.held else _rate(shown), answer.score
    if found.value and found.baseline:
        words = f"{people.ratio(found.value)} {short_names.name(found.baseline)}"
    return badge(short_names.name(answer.name), words)


def machine_badge(session: Session, machine_id: str) -> str:
    """The badge of a machine: the finding of its page in few words. It reads no board. Raises
    NotFound if it has no figures."""
    figures = machines.machine_figures(session, machine_id)
    bests = best_of(figures).values()
    kinds = [(one, machine_places.kind_of(session, one)) for one in bests]
    first = machine_places.first_of(kinds, lambda pair: pair[1].machines)
    shown = machines.shown_figure([first[0]] if first else figures)
    if not stored_figures.free(session, [shown]):
        return badge(short_names.name(shown.hardware), HELD)
    if first is None or first[1].machines < 2:
        return badge(short_names.name(shown.hardware), _rate(shown))
    words = f"{people.ratio(first[1].of_median)} the median of {first[1].machines}"
    return badge(f"{short_names.name(shown.hardware)} {shown.workload}", words)


def _rate(shown: CellFigure) -> str:
    return f"{speeds.short(shown.samples_per_second, shown.workload)} {shown.workload}"


def _shown(answer: hardware.HardwareAnswer) -> CellFigure:
    """The figure as a board shows it; of another set-up only where the board has none."""
    if answer.place or answer.figures:
        return answer.place or answer.figures[0]
    raise NotFound("no figure of a workload that this server knows", field="slug")


def _board(session: Session, name: str, same: dict[str, object]) -> tuple[BoardRow, ...]:
    """Every row of a workload's board in a set-up, or of its usual board, that is not held."""
    if name not in WORKLOADS:
        return ()
    filters = BoardFilters.model_validate(same | {"workload": name, "limit": 500})
    rows = leaderboard.leaderboard(session, filters).boards[0].rows
    return tuple(row for row in rows if not row.held)


def _setup(row: Any) -> str:
    return f"{row.workload}, {row.framework} {row.recipe}, batch {row.batch_size:,}"


def _place(rows: Sequence[BoardRow], slug: str) -> str:
    """``15th of 47 hardware``."""
    ranked = [row for row in rows if row.rank]
    mine = next((row.rank for row in ranked if row.hardware_slug == slug), None)
    return f"{people.ordinal(mine)} of {len(ranked)} hardware" if mine else "not ranked"


def _bar(row: Any, own: bool = False) -> Bar:
    rate, setup = row.samples_per_second, f"{row.framework} {row.recipe}"
    name = short_names.name(row.hardware, MOST_LABEL)
    return Bar(name, rate, speeds.short(rate, row.workload), row.device, setup, own)


def _ranked(rank: int | None, hardware: str) -> str:
    """``12. NVIDIA GeForce RTX 4090``."""
    before = f"{rank}. " if rank else ""
    return before + short_names.name(hardware, MOST_LABEL - len(before))


def _beside(own: Bar, rows: Sequence[BoardRow], slug: str) -> list[Bar]:
    """A bar among those of other hardware, of which some are taken, from the first to the last."""
    others, most = [row for row in rows if row.hardware_slug != slug], MOST_BARS - 1
    if len(others) > most:
        others = [others[round(n * (len(others) - 1) / (most - 1))] for n in range(most)]
    return _noted(sorted([*map(_bar, others), own], key=lambda bar: -bar.size))


def _noted(bars: list[Bar]) -> list[Bar]:
    """Bars that name their set-ups only where these differ."""
    differ = len({bar.note for bar in bars}) > 1
    return [bar if differ else bar._replace(note=None) for bar in bars]
