"""Routes of the HTML pages. Each page links to its JSON twin with the same answer."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse

from ...answers import owners
from ...answers.board_filters import BoardPageFilters
from ...answers.compared_things import compared_ids
from ...answers.filters import (
    HistoryFilters,
    ListPageFilters,
    MachineListPageFilters,
    ResultListFilters,
)
from ...answers.parameters import Words
from ...answers.prices import Prices
from ...answers.types.comparison import Across, Mode
from .. import render
from ..canonical import Moved, canonical
from ..pages import board_finding, guides, home, lists
from ..pages import compare as comparing
from ..pages import docs as api
from ..pages import hardware as hardware_pages
from ..pages import leaderboard as leaderboards
from ..pages import machine as machine_pages
from ..pages import owner as owner_pages
from ..pages import result as results
from ..pages import studies as study_pages
from ..pages import workload as workload_pages
from ..pages.common import Page
from .compare import PricesDep
from .deps import AuthorityDep, Reading, SettingsDep
from .hardware import MachineId, OwnerLabel, Slug
from .studies import OfHardware, OfPair, OfTrend

router = APIRouter(include_in_schema=False, dependencies=[Depends(canonical)])


@router.get("/")
def leaderboard(
    request: Request,
    session: Reading,
    settings: SettingsDep,
    filters: Annotated[BoardPageFilters, Query()],
) -> HTMLResponse:
    # The search of each page's header asks for scores; that of a board never leaves the board.
    if filters.q and filters.is_of_scores and owners.has_figures(session, filters.q):
        raise Moved(f"/owners/{quote(filters.q)}")
    by_score = home.home_page(session, filters, settings.baseline)
    prices = Prices({}, settings.prices)
    context = by_score or leaderboards.leaderboard_page(session, filters, settings.baseline, prices)
    unfound = filters.is_of_scores and context.heading == board_finding.NOTHING_FOUND
    if filters.q and unfound and (listed := lists.list_with(session, filters.q)):
        raise Moved(listed)
    return render.page(request, "home.html" if by_score else "leaderboard.html", context)


@router.get("/workloads/{name}")
def workload(request: Request, session: Reading, settings: SettingsDep, name: str) -> HTMLResponse:
    context = workload_pages.workload_page(session, name, settings.baseline)
    return render.page(request, "workload.html", context)


@router.get("/hardware")
def hardware_list(
    request: Request, session: Reading, filters: Annotated[ListPageFilters, Query()]
) -> HTMLResponse:
    return render.page(request, "hardware-list.html", lists.hardware_list(session, filters))


@router.get("/machines")
def machine_list(
    request: Request, session: Reading, filters: Annotated[MachineListPageFilters, Query()]
) -> HTMLResponse:
    return render.page(request, "machine-list.html", lists.machine_list(session, filters))


@router.get("/results")
def result_list(
    request: Request, session: Reading, filters: Annotated[ResultListFilters, Query()]
) -> HTMLResponse:
    return render.page(request, "result-list.html", lists.result_list(session, filters))


@router.get("/hardware/{slug}")
def hardware(
    request: Request, session: Reading, settings: SettingsDep, prices: PricesDep, slug: Slug
) -> HTMLResponse:
    context = hardware_pages.hardware_page(session, slug, settings.baseline, prices)
    return render.page(request, "hardware.html", context)


@router.get("/machines/{machine_id}")
def machine(
    request: Request,
    session: Reading,
    settings: SettingsDep,
    machine_id: MachineId,
    filters: Annotated[HistoryFilters, Query()],
) -> HTMLResponse:
    prices = Prices({}, settings.prices)
    context = machine_pages.machine_page(session, machine_id, filters, prices)
    return render.page(request, "machine.html", context)


@router.get("/owners/{owner:path}")
def owner(request: Request, session: Reading, owner: OwnerLabel) -> HTMLResponse:
    return render.page(request, "owner.html", owner_pages.owner_page(session, owner))


@router.get("/results/{result_id}")
def result(request: Request, session: Reading, result_id: str) -> HTMLResponse:
    return render.page(request, "result.html", results.result_page(session, result_id))


@router.get("/compare")
def compare(
    request: Request,
    session: Reading,
    prices: PricesDep,
    ids: Annotated[list[str] | None, Query(max_length=100)] = None,
    across: Across | None = None,
    mode: Mode | None = None,
    q: Words = "",
) -> HTMLResponse:
    chosen = compared_ids(",".join(ids), at_least=0) if ids else ()
    context = comparing.compare_page(session, chosen, prices, across, mode, q)
    return render.page(request, "compare.html", context)


@router.get("/frameworks")
def frameworks(request: Request, session: Reading, choice: OfHardware) -> HTMLResponse:
    return render.page(request, "frameworks.html", study_pages.frameworks_page(session, choice))


@router.get("/cpu-vs-gpu")
def cpu_vs_gpu(request: Request, session: Reading, choice: OfPair) -> HTMLResponse:
    return render.page(request, "cpu-vs-gpu.html", study_pages.cpu_vs_gpu_page(session, choice))


@router.get("/batch-size")
def batch_size(request: Request, session: Reading, choice: OfHardware) -> HTMLResponse:
    return render.page(request, "batch-size.html", study_pages.batch_size_page(session, choice))


@router.get("/trends")
def trends(request: Request, session: Reading, choice: OfTrend) -> HTMLResponse:
    return render.page(request, "trends.html", study_pages.trends_page(session, choice))


@router.get("/log")
def log(
    request: Request,
    session: Reading,
    authority: AuthorityDep,
    settings: SettingsDep,
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
) -> HTMLResponse:
    context = guides.log_page(session, authority, settings.license, before)
    return render.page(request, "log.html", context)


@router.get("/trust")
def trust(request: Request) -> HTMLResponse:
    return render.page(request, "trust.html", guides.trust_page())


@router.get("/methodology")
def methodology(request: Request) -> HTMLResponse:
    context = Page("How a speed is timed", "/api/v1/workloads")
    return render.page(request, "methodology.html", context)


@router.get("/verdicts")
def verdicts(request: Request) -> HTMLResponse:
    context = Page("How speeds are compared", "/api/v1/leaderboard")
    return render.page(request, "verdicts.html", context)


@router.get("/documents/{name:path}")
def document(request: Request, name: str) -> HTMLResponse:
    return render.page(request, "document.html", guides.document_page(name))


@router.get("/submit")
def submit(request: Request, settings: SettingsDep) -> HTMLResponse:
    server = str(request.base_url).rstrip("/")
    return render.page(request, "submit.html", guides.submit_page(server, settings))


@router.get("/docs")
def docs(request: Request, session: Reading) -> HTMLResponse:
    context = api.docs_page(request.app.openapi(), api.first_board(session))
    return render.page(request, "docs.html", context)


@router.get("/docs/{name}")
def docs_type(request: Request, name: str) -> HTMLResponse:
    return render.page(request, "type.html", api.type_page(request.app.openapi(), name))
