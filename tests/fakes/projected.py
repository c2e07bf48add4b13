"""An application whose log is projected before and after each request."""

import math
import time
from typing import Any

import httpx
from fastapi import FastAPI
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from bench_server.db.store import Store
from bench_server.db.tables import (
    Aggregate,
    EnvironmentRow,
    Measurement,
    Owner,
    OwnerSpread,
    PublishedFigure,
    SigningKey,
    Submission,
)
from bench_server.projection import position
from bench_server.projection.projector import Projector
from bench_server.recompute.worker import Compute, Recomputer
from bench_server.web.kept_answers import STALE_SECONDS

from .authority import AUTHORITY
from .seeding import invented
from .waiting import wait_for

SETTLED_SECONDS = 60
PROJECTED = (
    *(Measurement, Aggregate, OwnerSpread, EnvironmentRow),
    *(Owner, SigningKey, Submission, PublishedFigure),
)


def rows(store: Store) -> list[list[dict[str, Any]]]:
    with store.reading() as session:
        return [
            sorted(
                (row.model_dump() for row in session.scalars(select(table))),
                key=lambda row: str(row.get("submission_id") or sorted(row.items(), key=str)),
            )
            for table in PROJECTED
        ]


def is_projected(store: Store) -> bool:
    with store.reading() as session:
        return position.lag(session).entries == 0


def project(store: Store) -> None:
    Projector(store).catch_up()


def settle(store: Store, compute: Compute = invented) -> None:
    """Apply all log entries, recompute what waits by ``compute``, and apply the statements."""
    project(store)
    # Tests have clocks of their own: leases and days do not matter here.
    Recomputer(store, AUTHORITY, budget_seconds=math.inf, compute=compute).drain()
    project(store)


class Projected:
    """Stands in for the projector's thread, so that tests need not wait for it."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        store = self._app.state.store
        if scope["type"] == "http":
            await run_in_threadpool(project, store)
        await self._app(scope, receive, send)
        if scope["type"] == "http":
            await run_in_threadpool(project, store)


def recomputed(address: str, result_id: str) -> dict[str, Any]:
    """Wait until a real server has recomputed a result; returns its answer."""
    deadline = time.monotonic() + SETTLED_SECONDS
    while True:
        answer: dict[str, Any] = httpx.get(f"{address}/api/v1/results/{result_id}?wait=10").json()
        kinds = {str(one["figures"].get("verdict")) for one in answer.get("verdicts") or ()}
        if answer["status"] != "pending" and "pending" not in kinds:
            return answer
        assert time.monotonic() < deadline, answer
        time.sleep(0.2)


def settled(address: str) -> str:
    """Wait until a server's boards include every log entry, and no kept answer is older."""

    def is_ready() -> bool:
        state = httpx.get(f"{address}/readyz").json()
        return bool(state["entries"] == state["projected"])

    assert wait_for(is_ready, SETTLED_SECONDS), httpx.get(f"{address}/readyz").text
    time.sleep(STALE_SECONDS + 0.05)
    return address
