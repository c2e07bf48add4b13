"""``/healthz``: the process answers. ``/readyz``: so does its database, at the right version, and
how far the shown tables follow the log."""

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from ... import __version__
from ...db import migrate
from ...errors import NotReady
from ...projection import position
from .deps import StoreDep, problems

router = APIRouter(tags=["health"])


@router.get("/healthz", summary="Whether the process answers")
async def healthz() -> dict[str, str]:
    return {"status": "ok", "version": __version__}


@router.get("/readyz", summary="Whether the database answers too", responses=problems(503))
def readyz(store: StoreDep) -> Response:
    try:
        migrate.require_current(store.engine)
    except migrate.SchemaMismatch as error:
        raise NotReady(str(error), hint="bench-server migrate") from None
    with store.reading() as session:
        lag = position.lag(session)
    document: dict[str, object] = {"status": "ok", "entries": lag.size, "projected": lag.position}
    if lag.stopped_reason is not None:
        document["projection_stopped"] = lag.stopped_reason
    return JSONResponse(document)
