"""Routes of the log: checkpoint and tiles (C2SP tlog-tiles), and entries with their envelopes."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse

from ...answers import log_entries
from ...answers.types.trust import CosignedAnswer, LogAnswer, LogPage
from ...log import cosigning, reader
from .deps import AuthorityDep, Reading, SettingsDep, problems
from .listing import next_page

router = APIRouter(tags=["log"])
TileNumber = Annotated[
    str,
    Path(
        description="three digits per part; .p/W for a partial tile of width W",
        examples=["000", "000.p/3"],
    ),
]
TileLevel = Annotated[int, Path(ge=0, le=63, description="0: hashes of entries", examples=[0])]
FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
TILE: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}}}


class Tile(Response):
    media_type = "application/octet-stream"


@router.get("/api/v1/log", summary="The log's state, and the public keys to verify it with")
def get_log(session: Reading, authority: AuthorityDep, settings: SettingsDep) -> LogAnswer:
    return log_entries.state(session, authority, settings.license)


@router.get(
    "/api/v1/log/entries",
    summary="The log's entries with their envelopes, in order",
    responses=problems(422),
)
def list_log_entries(
    request: Request,
    response: Response,
    session: Reading,
    authority: AuthorityDep,
    start: Annotated[
        int, Query(ge=0, le=2**53 - 1, description="index of the first entry", examples=[512])
    ] = 0,
    limit: Annotated[
        int, Query(ge=1, le=256, description="how many at most", examples=[100])
    ] = 256,
) -> LogPage:
    page = log_entries.page(session, authority, start, limit)
    response.headers.update(next_page(request, page.next_start, "start"))
    return page


@router.get(
    "/api/v1/log/cosigned",
    summary="Daily checkpoints with the cosignatures of witnesses",
    responses=problems(422),
)
def list_cosigned(
    session: Reading,
    limit: Annotated[
        int, Query(ge=1, le=366, description="how many days at most", examples=[7])
    ] = 31,
) -> CosignedAnswer:
    return log_entries.cosigned(session, limit)


@router.get(
    "/checkpoint",
    summary="The log's signed size and root (C2SP tlog-checkpoint), with its cosignatures",
    response_class=PlainTextResponse,
)
def get_checkpoint(session: Reading) -> Response:
    note = cosigning.with_cosignatures(session, reader.newest_checkpoint(session))
    return PlainTextResponse(note, headers={"Cache-Control": "no-cache"})


@router.get(
    "/tile/entries/{number:path}",
    summary="Entries of the log, 256 a bundle (C2SP tlog-tiles)",
    response_class=Tile,
    responses=problems(404) | TILE,
)
def get_entry_tile(session: Reading, number: TileNumber) -> Response:
    return Tile(reader.entry_tile(session, number), headers=FOREVER)


@router.get(
    "/tile/{level}/{number:path}",
    summary="Hashes of the log's tree, 256 a tile (C2SP tlog-tiles)",
    response_class=Tile,
    responses=problems(404, 422) | TILE,
)
def get_hash_tile(session: Reading, level: TileLevel, number: TileNumber) -> Response:
    return Tile(reader.hash_tile(session, level, number), headers=FOREVER)
