"""``/api/v1/results``: post, list, read, and read back what was signed."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import TypeAdapter

from bench_protocol import envelope, strict_json
from bench_protocol.errors import ProtocolError

from .. import ingest, log, queries
from ..answers import (
    ReceiptAnswer,
    ResultAnswer,
    ResultDetail,
    ResultPageAnswer,
    SubmitAnswer,
    receipt_answer,
    result_fields,
)
from ..filters import ResultPageFilters
from ..guard import Rate
from ..problems import problem_of
from .deps import (
    MEDIA_TYPES,
    NDJSON,
    AuthorityDep,
    Documents,
    Now,
    Reading,
    StoreDep,
    json_body,
    problems,
)

router = APIRouter(prefix="/api/v1/results", tags=["results"])
DSSE = "application/vnd.dsse.envelope.v1+json"
ENVELOPE_SCHEMA = {
    "type": "object",
    "description": "DSSE envelope with one Ed25519 signature around an in-toto statement",
    "required": ["payloadType", "payload", "signatures"],
    "properties": {
        "payloadType": {"const": "application/vnd.in-toto+json"},
        "payload": {"type": "string", "contentEncoding": "base64"},
        "signatures": {"type": "array", "minItems": 1, "maxItems": 1},
    },
}


@router.post(
    "",
    summary="Submit a signed result, or many, one a line; posting again gives the same answer",
    status_code=201,
    response_model=SubmitAnswer,
    responses=problems(400, 403, 409, 410, 413, 415, 422)
    | {
        200: {"description": "this payload was kept before", "model": SubmitAnswer},
        207: {
            "description": "an answer for each line, in their order: a result or a problem",
            "content": {NDJSON: {}},
        },
    },
    openapi_extra=json_body(ENVELOPE_SCHEMA, (*MEDIA_TYPES, NDJSON)),
)
async def submit(
    request: Request,
    store: StoreDep,
    authority: AuthorityDep,
    body: Documents,
    now: Now,
    response: Response,
) -> SubmitAnswer | Response:
    rate: Rate = request.app.state.key_rate

    def spend(key_id: str) -> None:
        rate.spend(key_id, "a key")

    if isinstance(body, list):
        answers = await run_in_threadpool(ingest.accept_all, body, store, authority, now, spend)
        return Response(b"".join(map(_line, answers)), 207, media_type=NDJSON)
    accepted = await run_in_threadpool(ingest.accept, body, store, authority, now, spend)
    response.status_code = _status(accepted)
    response.headers["Location"] = f"/api/v1/results/{accepted.submission.id}"
    return _submitted(accepted)


@router.get("", summary="Results, newest first, page by page", responses=problems(422))
def results(session: Reading, filters: Annotated[ResultPageFilters, Query()]) -> ResultPageAnswer:
    rows, cursor = queries.results(session, filters)
    return ResultPageAnswer(tuple(ResultAnswer(**result_fields(*row)) for row in rows), cursor)


@router.get(
    "/{result_id}",
    summary="One result with all that was signed",
    responses=problems(404, 410),
)
def result(session: Reading, result_id: str) -> ResultDetail:
    submission, row = queries.result_with_id(session, result_id)
    predicate = strict_json.loads(submission.payload)["predicate"]
    return ResultDetail(
        **result_fields(submission, row),
        cell=predicate["cell"],
        payload_type=submission.payload_type,
        result=predicate,
    )


@router.get(
    "/{result_id}/envelope",
    summary="The signed envelope, in the one form this server writes envelopes",
    response_class=Response,
    responses=problems(404, 410) | {200: {"content": {DSSE: {"schema": ENVELOPE_SCHEMA}}}},
)
def signed(session: Reading, result_id: str) -> Response:
    submission, _ = queries.result_with_id(session, result_id)
    return Response(envelope.encode(log.envelope_of_result(submission)), media_type=DSSE)


@router.get(
    "/{result_id}/receipt",
    summary="Proof that the log holds this result, under the newest checkpoint",
    responses=problems(404, 410),
)
def receipt(session: Reading, result_id: str) -> ReceiptAnswer:
    submission, _ = queries.result_with_id(session, result_id)
    return receipt_answer(log.receipts_of_results(session, [submission.id])[submission.id])


def _status(accepted: ingest.Accepted) -> int:
    return 201 if accepted.created else 200


def _line(answer: ingest.Accepted | ProtocolError) -> bytes:
    """One line of the answer to many: the status it would have had alone, and its document."""
    if isinstance(answer, ProtocolError):
        problem = problem_of(answer)
        said = {"status": problem.status, "problem": problem.model_dump()}
    else:
        document = TypeAdapter(SubmitAnswer).dump_python(_submitted(answer), mode="json")
        said = {"status": _status(answer), "result": document}
    return strict_json.dumps(said) + b"\n"


def _submitted(accepted: ingest.Accepted) -> SubmitAnswer:
    return SubmitAnswer(
        **result_fields(accepted.submission, accepted.measurement),
        receipt=receipt_answer(accepted.receipt),
    )
