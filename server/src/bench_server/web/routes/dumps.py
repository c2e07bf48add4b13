"""Routes of the daily dumps: list, page, files."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import FileResponse, HTMLResponse

from ...export import daily
from .. import render
from ..pages.guides import dumps_page
from .deps import SettingsDep, problems

router = APIRouter(tags=["exports"])


@router.get("/api/v1/dumps", summary="The daily dumps of every result, the newest day first")
def list_dumps(settings: SettingsDep) -> daily.DumpsAnswer:
    return daily.listed(settings.dumps_dir)


@router.get("/dumps/", include_in_schema=False)
def page(request: Request, settings: SettingsDep) -> HTMLResponse:
    return render.page(request, "dumps.html", dumps_page(settings.dumps_dir))


@router.head("/dumps/{name}", include_in_schema=False)
@router.get(
    "/dumps/{name}",
    summary="A daily dump: every result of that day's state as a file",
    response_class=FileResponse,
    responses=problems(404),
)
def get_dump(
    settings: SettingsDep,
    name: Annotated[
        str, Path(description="name of a dump", examples=["results-2026-11-21.parquet"])
    ],
) -> FileResponse:
    path, media_type = daily.find(settings.dumps_dir, name)
    return FileResponse(path, media_type=media_type, filename=name)
