"""``/api/v1/results``: post, list, read, and read back what was signed."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import TypeAdapter

from bench_protocol.base import strict_json
from bench_protocol.base.errors import ProtocolError
from bench_protocol.payload import statement
from bench_protocol.signing import envelope

from ...answers import omissions, query_names, stored_results
from ...answers.filters import ResultPageFilters
from ...answers.stored_results import RecomputationsAnswer
from ...answers.types.results import (
    ResultAnswer,
    ResultDetail,
    ResultPageAnswer,
    SubmitAnswer,
    result_fields,
    shown_fields,
)
from ...answers.types.trust import ReceiptAnswer, receipt_answer
from ...db.store import Store
from ...ingest.accept import Accepted
from ...ingest.columns import stored_result
from ...ingest.inbox import Inbox
from ...log import reader
from ...projection import position
from ..client_networks import host_of, network
from ..position_watch import watch
from ..problems import problem_of
from ..rate_limit import Rate
from ..threads import in_own_thread
from .deps import (
    MEDIA_TYPES,
    NDJSON,
    Line,
    Reading,
    StoreDep,
    documents,
    envelope_example,
    json_body,
    problems,
)
from .listing import listing

router = APIRouter(prefix="/api/v1/results", tags=["results"])
ResultId = Annotated[str, Path(description="a result's id", examples=["0f1e2d3c4b5a6978"])]
PAGE = TypeAdapter(ResultPageAnswer)
SUBMITTED = TypeAdapter(SubmitAnswer)
DSSE = "application/vnd.dsse.envelope.v1+json"
ENVELOPE_SCHEMA = {
    "type": "object",
    "description": "DSSE envelope with one Ed25519 signature around an in-toto statement",
    "required": ["payloadType", "payload", "signatures"],
    "properties": {
        "payloadType": {
            "const": statement.RESULT_PAYLOAD_TYPE,
            "description": "media type of the payload",
        },
        "payload": {
            "type": "string",
            "contentEncoding": "base64",
            "description": "the in-toto statement that was signed, in base64",
        },
        "signatures": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "description": "keyid, and sig: the Ed25519 signature in base64",
        },
    },
}


@router.post(
    "",
    summary="Submit a signed result, or many, one a line; posting again gives the same answer",
    status_code=201,
    response_model=SubmitAnswer,
    responses=problems(400, 403, 409, 410, 413, 415, 422)
    | {
        200: {"description": "this payload was accepted before", "model": SubmitAnswer},
        207: {
            "description": "for each line that is not empty, in their order, its number and a "
            "result or a problem; Retry-After, if a line may be sent again later, is the longest "
            "wait of all lines",
            "content": {NDJSON: {"schema": {"$ref": "#/components/schemas/Line"}}},
        },
    },
    openapi_extra=json_body(
        ENVELOPE_SCHEMA, envelope_example(statement.RESULT_PAYLOAD_TYPE), (*MEDIA_TYPES, NDJSON)
    ),
)
async def submit_results(request: Request) -> Response:
    # FastAPI's dependencies would cost a tenth of the answer.
    state = request.app.state
    inbox: Inbox = state.inbox
    rate: Rate = state.key_rate

    def spend(key_id: str) -> None:
        rate.spend(key_id, "a key may send")

    sender = network(host_of(request))
    body = await documents(request)
    if isinstance(body, list):
        # The request itself is counted by the middleware.
        state.address_rate.spend(sender, "an address may send", len(body) - 1)
        raws = [line.raw for line in body]
        # Decoding many envelopes would hold up the event loop.
        accepted = await run_in_threadpool(inbox.accept, raws, state.clock(), spend, sender)
        return _many(body, await asyncio.gather(*map(asyncio.wrap_future, accepted)))
    (waiting,) = inbox.accept([body], state.clock(), spend, sender)
    return _one(await asyncio.wrap_future(waiting))


@router.get(
    "",
    summary="Results, page by page, the newest first unless sort says otherwise",
    response_model=ResultPageAnswer,
    responses=problems(422),
)
def list_results(
    request: Request, session: Reading, filters: Annotated[ResultPageFilters, Query()]
) -> Response:
    query_names.require_known(session, filters)
    rows, cursor = stored_results.results_page(session, filters)
    answers = (ResultAnswer(**result_fields(*row, filters.verdicts)) for row in rows)
    return listing(request, PAGE, ResultPageAnswer(tuple(answers), cursor))


@router.get(
    "/{result_id}",
    summary="One result with all that was signed; wait=5 waits until the boards include it",
    responses=problems(404, 410, 422),
)
async def get_result(
    request: Request,
    store: StoreDep,
    result_id: ResultId,
    wait: Annotated[
        float,
        Query(ge=0, le=30, description="seconds to wait while its status is pending", examples=[5]),
    ] = 0,
) -> ResultDetail:
    detail, request.state.as_of = await in_own_thread(_detail, store, result_id)
    if detail.status == "pending" and wait:
        log_index = await in_own_thread(_log_index, store, result_id)
        await watch().applied(store, log_index, wait)
        detail, request.state.as_of = await in_own_thread(_detail, store, result_id)
    return detail


@router.get(
    "/{result_id}/envelope",
    summary="The signed envelope, in the one form this server writes envelopes",
    response_class=Response,
    responses=problems(404, 410) | {200: {"content": {DSSE: {"schema": ENVELOPE_SCHEMA}}}},
)
def get_envelope(session: Reading, result_id: ResultId) -> Response:
    submission, _ = stored_results.result_with_id(session, result_id)
    return Response(envelope.encode(reader.envelope_of_result(submission)), media_type=DSSE)


@router.get(
    "/{result_id}/receipt",
    summary="Proof that the log holds this result, under the first checkpoint that covers it",
    responses=problems(404, 410),
)
def get_receipt(session: Reading, result_id: ResultId) -> ReceiptAnswer:
    submission, _ = stored_results.result_with_id(session, result_id)
    return receipt_answer(reader.receipts_of_results(session, [submission.id])[submission.id])


@router.get(
    "/{result_id}/recomputations",
    summary="What the server stated about the seeded jobs of this result, each with its receipt",
    responses=problems(404, 410),
)
def get_recomputations(session: Reading, result_id: ResultId) -> RecomputationsAnswer:
    submission, _ = stored_results.result_with_id(session, result_id)
    return stored_results.recomputations_of(session, submission)


def _one(answer: Accepted | ProtocolError) -> Response:
    if isinstance(answer, ProtocolError):
        raise answer
    location = f"/api/v1/results/{answer.id}"
    document = SUBMITTED.dump_json(_submitted(answer))
    return Response(document, _status(answer), {"Location": location}, "application/json")


def _many(lines: list[Line], answers: list[Accepted | ProtocolError]) -> Response:
    numbers = (line.number for line in lines)
    waits = [wait for answer in answers if (wait := getattr(answer, "retry_after_seconds", None))]
    headers = {"Retry-After": str(max(waits))} if waits else None
    return Response(b"".join(map(_line, numbers, answers)), 207, headers, NDJSON)


def _line(number: int, answer: Accepted | ProtocolError) -> bytes:
    """Its number, the status that a request of its own would have, and its document."""
    if isinstance(answer, ProtocolError):
        problem = problem_of(answer)
        document = strict_json.dumps(problem.model_dump())
        return b'{"line":%d,"status":%d,"problem":%s}\n' % (number, problem.status, document)
    document = SUBMITTED.dump_json(_submitted(answer))
    return b'{"line":%d,"status":%d,"result":%s}\n' % (number, _status(answer), document)


def _status(accepted: Accepted) -> int:
    return 201 if accepted.created else 200


def _submitted(accepted: Accepted) -> SubmitAnswer:
    return SubmitAnswer(
        accepted.id,
        accepted.payload_sha256,
        accepted.key_id,
        accepted.received_at,
        accepted.verdicts,
        receipt_answer(accepted.receipt),
    )


def _log_index(store: Store, result_id: str) -> int:
    with store.reading() as session:
        return reader.index_of_result(session, result_id)


def _detail(store: Store, result_id: str) -> tuple[ResultDetail, int]:
    with store.reading() as session:
        as_of = position.read(session.connection()).next_index
        submission, row = stored_results.result_with_id(session, result_id)
        result = stored_result(submission.payload)
        predicate = strict_json.loads(submission.payload)["predicate"]
        fields = result_fields(submission, row)
        detail = ResultDetail(
            **fields,
            **shown_fields(
                ResultAnswer(**fields),
                result,
                omissions.of_results(session.connection(), [result_id])[result_id],
            ),
            cell=predicate["cell"],
            reproduction=stored_results.reproduction_of(session, row),
            ask_id=row.ask_id,
            payload_type=submission.payload_type,
            result=predicate,
        )
        return detail, as_of
