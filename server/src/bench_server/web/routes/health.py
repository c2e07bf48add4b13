"""``/healthz``: the process answers. ``/readyz``: so does its database, at the right version, and
how far the shown tables follow the log."""

from dataclasses import dataclass

from fastapi import APIRouter, Request

from ... import __version__
from ...db import migrate
from ...errors import NotReady
from ...projection import position
from ..replica import ReplicaLag, replica_lag
from .deps import StoreDep, problems


@dataclass(frozen=True)
class Health:
    """The process answers."""

    status: str
    version: str


@dataclass(frozen=True)
class Readiness:
    """The database answers, and how far the boards and a read replica follow the log."""

    status: str
    entries: int
    projected: int
    projection_stopped: str | None = None
    replica: ReplicaLag | None = None


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
def get_readiness(request: Request, store: StoreDep) -> Readiness:
    try:
        migrate.require_current(store.engine)
    except migrate.SchemaMismatch as error:
        raise NotReady(str(error), hint="bench-server migrate") from None
    with store.reading() as session:
        lag = position.lag(session)
    replica = replica_lag(request.app.state.replica, store)
    return Readiness("ok", lag.size, lag.position, lag.stopped_reason, replica)
