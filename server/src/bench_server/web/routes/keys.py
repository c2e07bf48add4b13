"""``/api/v1/keys``: enroll, rotate, revoke, and the history of a key."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from bench_protocol.payload import statement

from ...answers.parameters import KeyId, Limit
from ...answers.types.trust import (
    KeyEventAnswer,
    KeyHistory,
    LoggedEnvelope,
    envelope_document,
    key_fields,
    receipt_answer,
)
from ...db.tables import Owner
from ...ingest import key_events
from ..client_networks import area, host_of, sender
from ..rate_limit import Rate
from .deps import (
    AuthorityDep,
    Body,
    Now,
    Reading,
    SettingsDep,
    StoreDep,
    envelope_example,
    in_turn,
    json_body,
    problems,
)
from .listing import next_page

router = APIRouter(prefix="/api/v1/keys", tags=["keys"])


@router.post(
    "",
    summary="Enroll, rotate or revoke a key with a signed event",
    status_code=201,
    responses=problems(400, 403, 413, 415, 422, 429)
    | {200: {"description": "already done", "model": KeyEventAnswer}},
    openapi_extra=json_body(
        key_events.Enrollment.model_json_schema(),
        {"envelope": envelope_example(statement.KEY_EVENT_PAYLOAD_TYPE), "invite": None},
    ),
)
async def submit_key_event(
    request: Request,
    store: StoreDep,
    authority: AuthorityDep,
    settings: SettingsDep,
    raw: Body,
    now: Now,
    response: Response,
) -> KeyEventAnswer:
    rate: Rate = request.app.state.enroll_rate
    address = sender(host_of(request))

    def spend() -> None:
        rate.spend(address, "an address may enroll")

    def spend_event(key_chain: str) -> None:
        request.app.state.act_rate.spend(key_chain, "acts and events that a key may send:")

    def accept() -> tuple[key_events.KeyEventResult, Owner]:
        where = area(host_of(request), authority)
        event = key_events.accept(
            raw, store, authority, settings.enrollment, now, where, spend, spend_event
        )
        with store.reading() as session:
            return event, session.get_one(Owner, event.key.owner)

    event, owner = await in_turn(request, accept)
    response.status_code = 201 if event.created else 200
    return KeyEventAnswer(**key_fields(event.key, owner), receipt=receipt_answer(event.receipt))


@router.get(
    "/{key_id}",
    summary="A key with its logged events, the oldest first: owner, validity",
    responses=problems(404, 422),
)
def get_key(
    request: Request,
    response: Response,
    session: Reading,
    key_id: Annotated[
        KeyId, Path(description="SHA-256 of the public key", examples=["0f1e2d3c4b5a6978" * 4])
    ],
    start: Annotated[
        int, Query(ge=0, le=2**53 - 1, description="least log index", examples=[512])
    ] = 0,
    limit: Annotated[Limit, Query()] = 50,
) -> KeyHistory:
    key, events, following = key_events.history(session, key_id, start, limit)
    response.headers.update(next_page(request, following, "start"))
    owner = session.get_one(Owner, key.owner)
    logged = tuple(LoggedEnvelope(envelope_document(e), receipt_answer(r)) for e, r in events)
    return KeyHistory(**key_fields(key, owner), events=logged, next_start=following)
