"""Routes of exports: ``export``, ``leaderboard``, ``compare`` and ``history`` as files, by file
extension."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import StreamingResponse
from sqlmodel import Session

from ...answers.comparison import compare
from ...answers.filters import HistoryFilters, compared_ids
from ...answers.selection import ResultExportQuery, chosen
from ...export import formats
from ...export import rows as export_rows
from ...export.formats import Format
from .compare import PRICE_PARAMETER, AMode, AnyAcross, Ids, PricesDep
from .deps import SettingsDep, StoreDep, problems
from .hardware import MachineId

router = APIRouter(prefix="/api/v1", tags=["exports"], default_response_class=StreamingResponse)
AnyFormat = Annotated[Format, Path(description="format of the file", examples=["csv"])]
FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "the rows, streamed",
        "content": {
            media: {"schema": {"type": "string"}} for media in formats.MEDIA_TYPES.values()
        },
    }
}


def _file(
    store: StoreDep,
    form: Format,
    name: str,
    ask: Callable[[Session], tuple[type, export_rows.Rows]],
    fields: str | None = None,
) -> StreamingResponse:
    """Query on a session that stays open while the rows are sent. The first rows are read
    immediately, so that a bad query is refused before the first byte is sent."""
    with ExitStack() as opening:
        answer, rows = ask(opening.enter_context(store.reading()))
        columns = formats.columns_of(answer)
        names = chosen(fields) or columns
        written = formats.stream(form, {name: columns[name] for name in names}, rows)
        first = next(written, b"")
        opened = opening.pop_all()

    def chunks() -> Iterator[bytes]:
        with opened:
            yield first
            yield from written

    disposition = f'attachment; filename="{name}.{form}"'
    return StreamingResponse(
        chunks(), headers={"Content-Disposition": disposition}, media_type=formats.MEDIA_TYPES[form]
    )


@router.get(
    "/export.{form}",
    summary="Every result that matches as CSV, JSON lines or Parquet",
    responses=FILES | problems(422),
)
def export_results(
    store: StoreDep, form: AnyFormat, filters: Annotated[ResultExportQuery, Query()]
) -> StreamingResponse:
    return _file(
        store,
        form,
        "results",
        lambda session: export_rows.results(session, filters),
        filters.fields,
    )


@router.get(
    "/leaderboard.{form}",
    summary="The leaderboard as CSV, JSON lines or Parquet, all of its rows",
    responses=FILES | problems(422),
)
def export_leaderboard(
    store: StoreDep,
    settings: SettingsDep,
    form: AnyFormat,
    filters: Annotated[export_rows.BoardExportQuery, Query()],
) -> StreamingResponse:
    return _file(
        store,
        form,
        "leaderboard",
        lambda session: export_rows.leaderboard(session, filters, settings.baseline),
        filters.fields,
    )


@router.get(
    "/compare.{form}",
    summary="A comparison as CSV, JSON lines or Parquet, a row for each thing in each row",
    responses=FILES | problems(410, 422),
    openapi_extra={"parameters": [PRICE_PARAMETER]},
)
def export_comparison(
    store: StoreDep,
    form: AnyFormat,
    prices: PricesDep,
    ids: Ids,
    across: AnyAcross = None,
    mode: AMode = None,
) -> StreamingResponse:
    chosen = compared_ids(ids)
    return _file(
        store,
        form,
        "compare",
        lambda session: export_rows.compare(compare(session, chosen, prices, across, mode)),
    )


@router.get(
    "/machines/{machine_id}/history.{form}",
    summary="A machine's history in one workload and set-up as CSV, JSON lines or Parquet",
    responses=FILES | problems(404, 422),
)
def export_machine_history(
    store: StoreDep,
    form: AnyFormat,
    machine_id: MachineId,
    filters: Annotated[HistoryFilters, Query()],
) -> StreamingResponse:
    return _file(
        store,
        form,
        "history",
        lambda session: export_rows.machine_history(session, machine_id, filters),
    )
