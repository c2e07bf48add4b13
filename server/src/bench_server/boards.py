"""The leaderboard: query -> rank -> answer. Page and API show what this returns."""

from sqlmodel import Session

from bench_protocol.catalogue import CATALOGUE
from bench_protocol.workloads import Workload

from . import queries, rank
from .answers import (
    Board,
    BoardRow,
    FigureAnswer,
    UnrankedRow,
    figure_fields,
    workload_answer,
)
from .filters import BoardFilters
from .problems import InvalidQuery
from .tables import Measurement


def leaderboard(session: Session, filters: BoardFilters) -> tuple[Board, ...]:
    """Boards of one workload or of all.

    Raises:
        InvalidQuery: the catalogue has no such workload.
    """
    return tuple(board(session, workload, filters) for workload in _asked_for(filters))


def board(session: Session, workload: Workload, filters: BoardFilters) -> Board:
    """One workload's board."""
    figures = rank.figures(queries.board_repeats(session, workload, filters))
    ranked = rank.by_setup(figures) if filters.group == "setup" else rank.by_hardware(figures)
    unranked = queries.board_unranked(session, workload, filters)
    baseline = _baseline(ranked, filters.baseline)
    return Board(
        workload=workload_answer(workload),
        baseline=baseline.hardware if baseline else None,
        baseline_slug=baseline.hardware_slug if baseline else None,
        baseline_setup=baseline.setup.words if baseline else None,
        rows=tuple(_row(row, baseline, workload) for row in ranked) if baseline else (),
        unranked=tuple(_unranked(row) for row in unranked),
    )


def _asked_for(filters: BoardFilters) -> tuple[Workload, ...]:
    if filters.workload is None:
        return CATALOGUE
    found = tuple(workload for workload in CATALOGUE if workload.name == filters.workload)
    if not found:
        known = ", ".join(workload.name for workload in CATALOGUE)
        raise InvalidQuery(
            f"no workload {filters.workload!r}", field="workload", mend=f"choose one of: {known}"
        )
    return found


def _baseline(ranked: list[rank.RankedRow], slug: str | None) -> rank.Figure | None:
    """The chosen hardware where it is on the board, else the slowest."""
    chosen = (row.figure for row in ranked if row.figure.hardware_slug == slug)
    return next(chosen, ranked[-1].figure if ranked else None)


def _row(row: rank.RankedRow, baseline: rank.Figure, workload: Workload) -> BoardRow:
    samples = workload.data_set.train_samples
    return BoardRow(
        **figure_fields(row.figure, samples),
        workload=workload.name,
        rank=row.rank,
        speed_up=baseline.ns_per_sample / row.figure.ns_per_sample,
        others=tuple(FigureAnswer(**figure_fields(other, samples)) for other in row.others),
    )


def _unranked(row: Measurement) -> UnrankedRow:
    return UnrankedRow(
        result_id=row.submission_id,
        hardware=row.hardware,
        hardware_slug=row.hardware_slug,
        workload=row.workload,
        framework=row.framework,
        device=row.device,
        recipe=row.recipe,
        batch_size=row.batch_size,
        precision=row.precision,
        data=row.data,
        reason=row.unranked_reason or "",
        received_at=row.received_at,
    )
