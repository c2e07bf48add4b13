"""The pages. Each has a JSON twin with the same answer, linked from it."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from .. import pages, render
from ..filters import BoardPageFilters, compared_ids
from .deps import AuthorityDep, Reading, SettingsDep

router = APIRouter(include_in_schema=False)


@router.get("/")
def leaderboard(
    request: Request, session: Reading, filters: Annotated[BoardPageFilters, Query()]
) -> HTMLResponse:
    return render.page(request, "leaderboard.html", pages.leaderboard_page(session, filters))


@router.get("/results/{result_id}")
def result(request: Request, session: Reading, result_id: str) -> HTMLResponse:
    return render.page(request, "result.html", pages.result_page(session, result_id))


@router.get("/compare")
def compare(
    request: Request,
    session: Reading,
    ids: Annotated[list[str] | None, Query(max_length=100)] = None,
) -> HTMLResponse:
    chosen = compared_ids(",".join(ids), at_least=0) if ids else ()
    return render.page(request, "compare.html", pages.compare_page(session, chosen))


@router.get("/log")
def log(
    request: Request, session: Reading, authority: AuthorityDep, settings: SettingsDep
) -> HTMLResponse:
    address = str(request.base_url).rstrip("/")
    context = pages.log_page(session, authority, settings.license, address)
    return render.page(request, "log.html", context)


@router.get("/docs")
def docs(request: Request) -> HTMLResponse:
    return render.page(request, "docs.html", pages.docs_page(request.app.openapi()))
