"""``POST /api/v1/keys``."""

from fastapi import APIRouter, Response
from fastapi.concurrency import run_in_threadpool

from ..answers import KeyAnswer, key_answer
from ..enroll import Enrollment, enroll
from .deps import Body, Now, StoreDep, json_body, problems

router = APIRouter(prefix="/api/v1/keys", tags=["keys"])


@router.post(
    "",
    summary="Enroll a public key by an event that the key itself signed",
    status_code=201,
    responses=problems(400, 403, 413, 415, 422)
    | {200: {"description": "the key was enrolled before", "model": KeyAnswer}},
    openapi_extra=json_body(Enrollment.model_json_schema()),
)
async def enroll_key(store: StoreDep, raw: Body, now: Now, response: Response) -> KeyAnswer:
    row, created = await run_in_threadpool(enroll, raw, store, now)
    response.status_code = 201 if created else 200
    return key_answer(row)
