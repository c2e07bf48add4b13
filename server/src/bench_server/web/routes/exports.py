"""Routes of exports: ``export``, ``leaderboard`` and ``compare`` as files, by file extension."""

from itertools import chain
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import StreamingResponse

from ...answers.board_filters import BoardFilters
from ...answers.filters import ResultFilters
from ...answers.prices import Prices
from ...export import formats
from ...export import rows as export_rows
from ...export.formats import Format
from .compare import PRICE_PARAMETER, Comparison
from .deps import Exporting, SettingsDep, problems

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


def _file(form: Format, name: str, answer: type, rows: export_rows.Rows) -> StreamingResponse:
    """The first rows are read immediately, so that a bad query is refused before the first byte."""
    written = formats.stream(form, formats.columns_of(answer), rows)
    first = next(written, b"")
    disposition = f'attachment; filename="{name}.{form}"'
    return StreamingResponse(
        chain([first], written),
        headers={"Content-Disposition": disposition},
        media_type=formats.MEDIA_TYPES[form],
    )


@router.get(
    "/export.{form}",
    summary="Every result that matches as CSV, JSON lines or Parquet",
    responses=FILES | problems(422, 503),
)
def export_results(
    session: Exporting, form: AnyFormat, filters: Annotated[ResultFilters, Query()]
) -> StreamingResponse:
    return _file(form, "results", *export_rows.results(session, filters))


@router.get(
    "/leaderboard.{form}",
    summary="The leaderboard as CSV, JSON lines or Parquet, all of its rows",
    responses=FILES | problems(422, 503),
)
def export_leaderboard(
    session: Exporting,
    settings: SettingsDep,
    form: AnyFormat,
    filters: Annotated[BoardFilters, Query()],
) -> StreamingResponse:
    rows = export_rows.leaderboard(session, filters, settings.baseline, Prices({}, settings.prices))
    return _file(form, "leaderboard", *rows)


@router.get(
    "/compare.{form}",
    summary="A comparison as CSV, JSON lines or Parquet, a row for each thing in each row",
    responses=FILES | problems(410, 422),
    openapi_extra={"parameters": [PRICE_PARAMETER]},
)
def export_comparison(form: AnyFormat, answer: Comparison) -> StreamingResponse:
    return _file(form, "compare", *export_rows.compare(answer))
