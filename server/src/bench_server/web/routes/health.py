"""``/healthz``: the process answers. ``/readyz``: so does its database, at the right version."""

from dataclasses import dataclass

from fastapi import APIRouter

from ... import __version__
from ...db import migrate
from ...errors import NotReady
from ...projection import position
from .deps import StoreDep, problems


@dataclass(frozen=True)
class Health:
    """The process answers."""

    status: str
    version: str


@dataclass(frozen=True)
class Readiness:
    """The database answers, and how far the boards follow the log."""

    status: str
    entries: int
    projected: int
    projection_stopped: str | None = None


router = APIRouter(tags=["health"])


@router.get("/healthz", summary="Whether the process answers")
async def get_health() -> Health:
    return Health("ok", __version__)


@router.get(
    "/readyz",
    summary="Whether the database answers too",
    responses=problems(503),
    response_model_exclude_none=True,
)
def get_readiness(store: StoreDep) -> Readiness:
    try:
        migrate.require_current(store.engine)
    except migrate.SchemaMismatch as error:
        raise NotReady(str(error), hint="bench-server migrate") from None
    with store.reading() as session:
        lag = position.lag(session)
    return Readiness("ok", lag.size, lag.position, lag.stopped_reason)
