"""``/api/v1/speed-runs``: witnessed runs, from the beacon to the statement."""

import asyncio
import time
from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.concurrency import run_in_threadpool

from bench_protocol.training import speed_run

from ...answers import witnessed_speeds
from ...answers.parameters import MachineId
from ...answers.witnessed_speeds import SpeedRunAnswer, WitnessedSpeedPage
from ...db.store import Store
from ...ingest import speed_runs
from ...ingest.speed_runs import Begun, Committed, Stored
from .deps import (
    AuthorityDep,
    Body,
    Now,
    Reading,
    SettingsDep,
    StateBody,
    StoreDep,
    binary_body,
    envelope_example,
    json_body,
    problems,
)
from .results import ENVELOPE_SCHEMA

router = APIRouter(prefix="/api/v1/speed-runs", tags=["witnessed runs"])
RunId = Annotated[
    str,
    Path(
        pattern="^[0-9a-f]{32}$",
        description="the challenge's id",
        examples=["0f1e2d3c4b5a6978" * 2],
    ),
]
Segment = Annotated[
    int, Path(ge=0, lt=speed_run.MOST_SEGMENTS, description="an opened segment", examples=[2])
]
POLL_SECONDS = 0.25


def signed_body(payload_type: str, what: str) -> dict[str, object]:
    schema = ENVELOPE_SCHEMA | {"description": f"DSSE envelope of {what}"}
    types = {"payloadType": {"const": payload_type}}
    schema["properties"] = {**ENVELOPE_SCHEMA["properties"], **types}  # type: ignore[dict-item]
    return json_body(schema, envelope_example(payload_type))


# The body is read before the clock, so a slow sender gains no time.
@router.post(
    "",
    summary="Begin the witnessed run of a challenge: the server's clock starts, and it gives a "
    "beacon",
    status_code=201,
    responses=problems(400, 403, 413, 415, 422, 429),
    openapi_extra=signed_body(speed_run.START_PAYLOAD_TYPE, "a start"),
)
async def begin_speed_run(
    store: StoreDep, authority: AuthorityDep, settings: SettingsDep, raw: Body, now: Now
) -> Begun:
    a_day = settings.witness_runs_a_day
    return await run_in_threadpool(speed_runs.begin, raw, store, authority.origin, now, a_day)


@router.post(
    "/root",
    summary="Commit to all states of a witnessed run: the server's clock stops, and it draws",
    responses=problems(400, 403, 404, 409, 410, 413, 415, 422),
    openapi_extra=signed_body(speed_run.ROOT_PAYLOAD_TYPE, "a root"),
)
async def commit_speed_run(
    store: StoreDep, authority: AuthorityDep, settings: SettingsDep, raw: Body, now: Now
) -> Committed:
    openings = settings.witness_openings
    return await run_in_threadpool(speed_runs.commit, raw, store, authority.origin, now, openings)


@router.put(
    "/{run_id}/segments/{segment}",
    summary="Upload an opened segment: proofs and state, as docs/protocol.md has them",
    responses=problems(404, 409, 410, 413, 415, 422),
    openapi_extra=binary_body("proofs, then the state"),
)
async def put_segment(
    store: StoreDep, run_id: RunId, segment: Segment, body: StateBody, now: Now
) -> Stored:
    return await run_in_threadpool(speed_runs.put, run_id, segment, body, store, now)


@router.get(
    "/{run_id}",
    summary="A witnessed run; wait=5 waits until it is judged",
    responses=problems(404, 422),
)
async def get_speed_run(
    store: StoreDep,
    run_id: RunId,
    wait: Annotated[
        float, Query(ge=0, le=30, description="seconds to wait while it waits", examples=[5])
    ] = 0,
) -> SpeedRunAnswer:
    deadline = time.monotonic() + wait
    while True:
        answer = await run_in_threadpool(_read, store, run_id)
        if answer.state != "waiting" or time.monotonic() >= deadline:
            return answer
        await asyncio.sleep(POLL_SECONDS)


def _read(store: Store, run_id: str) -> SpeedRunAnswer:
    with store.reading() as session:
        return witnessed_speeds.speed_run(session, run_id)


@router.get(
    "",
    summary="The newest witnessed speeds of a machine, with the statements and their receipts",
    responses=problems(422),
)
def list_witnessed_speeds(
    session: Reading,
    machine: Annotated[
        MachineId, Query(description="a machine's id", examples=["0f1e2d3c4b5a6978"])
    ],
) -> WitnessedSpeedPage:
    return witnessed_speeds.page(session, machine)
