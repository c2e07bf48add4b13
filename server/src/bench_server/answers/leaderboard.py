"""The leaderboard: query, rank, answer. Page and API show the same answer."""

from collections import Counter
from collections.abc import Callable, Sequence

from sqlmodel import Session

from bench_protocol.catalogue import CATALOGUE, workload_named
from bench_protocol.workloads import Workload

from ..errors import InvalidQuery
from ..ranking import compare as ranking
from ..ranking import published
from ..ranking.compare import RankedRow, ranked, section
from ..ranking.figures import Figure
from ..ranking.peaks import peak_flops
from . import cursors, known, leaderboard_sql, unranked
from .filters import BoardFilters
from .types import Board, BoardRow, FigureAnswer, UnrankedRow, figure_fields, workload_answer

# Sort keys of a board, smallest first; None omits a figure. Within one workload MFU is proportional
# to the peak divided by the time.
SORTS: dict[str, Callable[[Figure], float | None]] = {
    "time": lambda figure: figure.ns_per_sample,
    "throughput": lambda figure: figure.ns_per_sample,
    "energy": lambda figure: figure.evidence.joules_per_sample,
    "mfu": lambda figure: _negative(_peak_use(figure)),
    "accuracy": lambda figure: _negative(figure.evidence.accuracy),
    "date": lambda figure: -figure.newest_at.timestamp(),
}


def leaderboard(session: Session, filters: BoardFilters) -> tuple[Board, ...]:
    """Boards of one workload or of all.

    Raises:
        InvalidQuery: a cursor is given without a workload.
    """
    return boards_of(session, asked_for(filters), filters)


def board(session: Session, workload: Workload, filters: BoardFilters) -> Board:
    """One workload's board."""
    (board_of_workload,) = boards_of(session, (workload,), filters)
    return board_of_workload


def boards_of(
    session: Session, workloads: Sequence[Workload], filters: BoardFilters
) -> tuple[Board, ...]:
    """Boards of workloads. All figures are read at once.

    Raises:
        InvalidQuery: a framework, a hardware or the baseline is unknown.
    """
    known.require_known(session, filters)
    figures = {}
    if filters.sort == "energy" or filters.group != "result":
        figures = leaderboard_sql.figures(session, workloads, filters)
    baselines = leaderboard_sql.figures(session, workloads, _baselines(filters))
    unranked_rows = {} if filters.cursor else unranked.unranked_rows(session, workloads, filters)
    return tuple(
        _board(
            session,
            workload,
            filters,
            figures.get(workload.digest, []),
            baselines[workload.digest],
            unranked_rows.get(workload.digest, ()),
        )
        for workload in workloads
    )


def _board(
    session: Session,
    workload: Workload,
    filters: BoardFilters,
    figures: Sequence[Figure],
    baselines: Sequence[Figure],
    unranked_rows: tuple[UnrankedRow, ...],
) -> Board:
    """A workload's board from its figures, those of the baseline, and the unranked rows."""
    by_energy, by_result = filters.sort == "energy", filters.group == "result"
    scopes = _energy_scopes(figures) if by_energy else ()
    if scopes and filters.energy_scope is None:
        filters = filters.model_copy(update={"energy_scope": scopes[0]})
    if by_result:
        results = leaderboard_sql.results(session, workload, filters)
        page = ranked(results.figures, one_each=False, ranks_before=results.ranks_before)
        cursor = results.next_cursor
        candidates = [results.slowest] if results.slowest else []
    else:
        places = _sorted(figures, filters)
        page, cursor = _page(places, filters)
        candidates = [row.figure for row in places]
    baseline = _baseline(filters, candidates, baselines)
    return Board(
        workload=workload_answer(workload),
        baseline=baseline.hardware if baseline else None,
        baseline_slug=baseline.hardware_slug if baseline else None,
        baseline_setup=baseline.setup.words if baseline else None,
        rows=tuple(_row(row, baseline) for row in page) if baseline else (),
        row_count=None if by_result else len(candidates),
        unranked=unranked_rows,
        energy_scope=filters.energy_scope,
        energy_scopes=scopes,
        next_cursor=cursor,
    )


def _energy_scopes(figures: Sequence[Figure]) -> tuple[str, ...]:
    """The energy scopes on the board, the most common first."""
    counted = Counter(figure.evidence.energy_scope for figure in figures)
    return tuple(sorted(filter(None, counted), key=lambda scope: (-counted[scope], scope)))


def _sorted(figures: Sequence[Figure], filters: BoardFilters) -> list[RankedRow]:
    """All rows of a board, by tier, then by the sort key."""
    value = SORTS[filters.sort or "time"]
    scope = filters.energy_scope
    keyed = [
        (value(figure), figure.id, figure)
        for figure in figures
        if scope in (None, figure.evidence.energy_scope)
    ]
    ordered = sorted(key for key in keyed if key[0] is not None)
    return ranked([figure for *_, figure in ordered], one_each=filters.group != "setup")


def _page(rows: list[RankedRow], filters: BoardFilters) -> tuple[list[RankedRow], str | None]:
    """The rows after the cursor, at most ``limit``, and the cursor of the next page."""
    value = SORTS[filters.sort or "time"]

    def place(row: RankedRow) -> tuple[int, float, str]:
        return section(row.figure), float(value(row.figure) or 0), row.figure.id

    if filters.cursor is not None:
        last = cursors.read(filters.cursor, int, float, str)
        rows = [row for row in rows if place(row) > last]
    page = rows[: filters.limit]
    return page, cursors.write(*place(page[-1])) if len(rows) > len(page) else None


def _peak_use(figure: Figure) -> float | None:
    peak = peak_flops(figure.hardware, figure.setup.precision)
    return None if peak is None else 1 / figure.ns_per_sample / peak


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def asked_for(filters: BoardFilters) -> tuple[Workload, ...]:
    """The requested workload, or all.

    Raises:
        InvalidQuery: a cursor is given without a workload.
    """
    if filters.cursor and not filters.workload:
        raise InvalidQuery("a cursor belongs to one workload's board", field="workload")
    if filters.workload is None:
        return CATALOGUE
    return (workload_named(filters.workload),)


def _baselines(filters: BoardFilters) -> BoardFilters:
    """Queries for the baseline: the chosen hardware, or the default."""
    return BoardFilters.model_validate(
        {
            "hardware": filters.baseline or published.DEFAULT_BASELINE,
            "batch_size": filters.batch_size,
            "precision": filters.precision,
        }
    )


def _baseline(
    filters: BoardFilters, places: Sequence[Figure], baselines: Sequence[Figure]
) -> Figure | None:
    """The best figure of the baseline's hardware, taken from the board if it is there. If it has
    no figure, the slowest of the whole board, on every page."""
    if not places:
        return None
    slug = filters.baseline or published.DEFAULT_BASELINE
    on_board = next((figure for figure in places if figure.hardware_slug == slug), None)
    if on_board is not None and filters.group != "result":
        return on_board
    rows = ranked(baselines, one_each=True)
    return rows[0].figure if rows else max(places, key=lambda figure: figure.ns_per_sample)


def _row(row: RankedRow, baseline: Figure) -> BoardRow:
    """A row of the board."""
    workload = workload_named(row.figure.subject.workload)
    comparison_found = ranking.compare(row.figure, baseline)
    return BoardRow(
        **figure_fields(row.figure, workload),
        workload=workload.name,
        rank=row.rank,
        setups=row.setups,
        speed_up=baseline.ns_per_sample / row.figure.ns_per_sample,
        speed_up_low=comparison_found.low,
        speed_up_high=comparison_found.high,
        others=tuple(FigureAnswer(**figure_fields(other, workload)) for other in row.others),
    )
