"""``/api/v1/results``: post, list, read, and read back what was signed."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.concurrency import run_in_threadpool

from bench_protocol import envelope, strict_json

from .. import ingest, queries
from ..answers import ResultAnswer, ResultDetail, ResultPageAnswer, result_fields
from ..filters import ResultFilters
from .deps import Body, Now, Reading, StoreDep, json_body, problems

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
    summary="Submit one signed result; posting it again gives the same answer",
    status_code=201,
    responses=problems(400, 403, 409, 413, 415, 422)
    | {200: {"description": "this payload was kept before", "model": ResultAnswer}},
    openapi_extra=json_body(ENVELOPE_SCHEMA),
)
async def submit(store: StoreDep, raw: Body, now: Now, response: Response) -> ResultAnswer:
    submission, row, created = await run_in_threadpool(ingest.accept, raw, store, now)
    response.status_code = 201 if created else 200
    response.headers["Location"] = f"/api/v1/results/{submission.id}"
    return ResultAnswer(**result_fields(submission, row))


@router.get("", summary="Results, newest first, page by page", responses=problems(422))
def results(session: Reading, filters: Annotated[ResultFilters, Query()]) -> ResultPageAnswer:
    rows, cursor = queries.results(session, filters)
    return ResultPageAnswer(tuple(ResultAnswer(**result_fields(*row)) for row in rows), cursor)


@router.get("/{result_id}", summary="One result with all that was signed", responses=problems(404))
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
    responses=problems(404) | {200: {"content": {DSSE: {"schema": ENVELOPE_SCHEMA}}}},
)
def signed(session: Reading, result_id: str) -> Response:
    submission, _ = queries.result_with_id(session, result_id)
    signature = envelope.Signature(submission.key_id, submission.signature)
    kept = envelope.Envelope(submission.payload_type, submission.payload, (signature,))
    return Response(envelope.encode(kept), media_type=DSSE)
