"""Routes of pictures, badges and feeds, for embedding in other pages."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse

from bench_protocol.base import format as people

from ...answers.board_filters import BoardPageFilters
from .. import drawn_cards, feeds, share_cards
from ..pages.workload import workload_called
from ..static_files import FOLDER
from .compare import Comparison
from .deps import Reading, SettingsDep
from .hardware import MachineId, OwnerLabel, Slug

router = APIRouter(include_in_schema=False)
# Longer ones do not fit a card.
MOST_ADDRESS = 60
SHORT = {"Cache-Control": "public, max-age=300"}


def _png(card: drawn_cards.Card, request: Request, settings: SettingsDep) -> Response:
    host, page = request.url.netloc, request.url.path.removesuffix("card.png").rstrip("/")
    address = host + page if len(host + page) <= MOST_ADDRESS else host
    mark = f"{address} · {request.app.state.clock():%Y-%m-%d}"
    entries = people.plural(request.state.as_of, "entry", "entries")
    log = f"From the first {entries} of the log at {host}/log"
    picture = drawn_cards.png(card, settings.site_name, mark, log)
    return Response(picture, media_type="image/png", headers=SHORT)


def _svg(text: str) -> Response:
    return Response(text, media_type="image/svg+xml", headers=SHORT)


@router.get("/card.png")
def board_card(
    request: Request,
    session: Reading,
    settings: SettingsDep,
    filters: Annotated[BoardPageFilters, Query()],
) -> Response:
    return _png(share_cards.board_card(session, filters, settings.baseline), request, settings)


@router.get("/workloads/{name}/card.png")
def workload_card(request: Request, session: Reading, settings: SettingsDep, name: str) -> Response:
    filters = BoardPageFilters.model_validate({"workload": workload_called(name).name})
    return _png(share_cards.board_card(session, filters, settings.baseline), request, settings)


@router.get("/hardware/{slug}/card.png")
def hardware_card(
    request: Request, session: Reading, settings: SettingsDep, slug: Slug
) -> Response:
    return _png(share_cards.hardware_card(session, slug), request, settings)


@router.get("/machines/{machine_id}/card.png")
def machine_card(
    request: Request, session: Reading, settings: SettingsDep, machine_id: MachineId
) -> Response:
    return _png(share_cards.machine_card(session, machine_id), request, settings)


@router.get("/results/{result_id}/card.png")
def result_card(
    request: Request, session: Reading, settings: SettingsDep, result_id: str
) -> Response:
    return _png(share_cards.result_card(session, result_id), request, settings)


@router.get("/compare/card.png")
def compare_card(request: Request, settings: SettingsDep, answer: Comparison) -> Response:
    return _png(share_cards.compare_card(answer), request, settings)


@router.get("/hardware/{slug}/badge.svg")
def hardware_badge(session: Reading, settings: SettingsDep, slug: Slug) -> Response:
    return _svg(share_cards.hardware_badge(session, slug, settings.baseline))


@router.get("/machines/{machine_id}/badge.svg")
def machine_badge(session: Reading, settings: SettingsDep, machine_id: MachineId) -> Response:
    return _svg(share_cards.machine_badge(session, machine_id))


@router.get("/favicon.ico")
def favicon() -> Response:
    return FileResponse(FOLDER / "favicon.ico", media_type="image/x-icon", headers=SHORT)


@router.get("/apple-touch-icon.png")
def touch_icon() -> Response:
    return FileResponse(FOLDER / "apple-touch-icon.png", headers=SHORT)


@router.get("/feed.atom")
def feed(request: Request, session: Reading, settings: SettingsDep) -> Response:
    return _atom(request, settings, feeds.new_results(session))


@router.get("/machines/{machine_id}/feed.atom")
def machine_feed(
    request: Request, session: Reading, settings: SettingsDep, machine_id: MachineId
) -> Response:
    return _atom(request, settings, feeds.of_machine(session, machine_id))


@router.get("/hardware/{slug}/feed.atom")
def hardware_feed(
    request: Request, session: Reading, settings: SettingsDep, slug: Slug
) -> Response:
    return _atom(request, settings, feeds.of_hardware(session, slug))


@router.get("/owners/{owner:path}/feed.atom")
def owner_feed(
    request: Request, session: Reading, settings: SettingsDep, owner: OwnerLabel
) -> Response:
    return _atom(request, settings, feeds.of_owner(session, owner))


def _atom(request: Request, settings: SettingsDep, feed: feeds.Feed) -> Response:
    text = feeds.atom(feed, str(request.base_url).rstrip("/"), settings.site_name)
    return Response(text, media_type="application/atom+xml", headers=SHORT)
