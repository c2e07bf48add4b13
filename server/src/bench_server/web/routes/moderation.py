"""``POST /api/v1/challenges`` and ``/acts``: nonces for runs, and acts on results."""

from fastapi import APIRouter, Request

from bench_protocol.payload.acts import ACT_PAYLOAD_TYPE, CHALLENGE_REQUEST_PAYLOAD_TYPE

from ...answers import stored_results
from ...answers.types.shared_fields import unit_fields
from ...answers.types.trust import ActAnswer, OwnResult, envelope_document, receipt_answer
from ...db.store import Store
from ...ingest import challenges, moderation
from ...ingest.challenges import ChallengeAnswer
from ...log import reader
from ..client_networks import host_of, sender
from ..rate_limit import Rate
from .deps import (
    AuthorityDep,
    Body,
    Now,
    SettingsDep,
    StoreDep,
    envelope_example,
    in_turn,
    json_body,
    problems,
)

OF_ROW = OwnResult.__dataclass_fields__.keys() - {
    "id",
    "envelope",
    "receipt",
    "unit",
    "tokens_per_second",
}
router = APIRouter(prefix="/api/v1", tags=["keys"])


@router.post(
    "/challenges",
    summary="Issue a signed nonce that binds a run's results to this moment",
    status_code=201,
    responses=problems(400, 403, 409, 413, 415, 422, 429),
    openapi_extra=json_body(
        {"type": "object", "description": "DSSE envelope of a ChallengeRequest"},
        envelope_example(CHALLENGE_REQUEST_PAYLOAD_TYPE),
    ),
)
async def issue_challenge(
    request: Request,
    store: StoreDep,
    authority: AuthorityDep,
    settings: SettingsDep,
    raw: Body,
    now: Now,
) -> ChallengeAnswer:
    # Each challenge is a row.
    rate: Rate = request.app.state.challenge_rate
    rate.spend(sender(host_of(request)), "challenges that an address may ask for:")
    hours = settings.challenge_hours
    return await in_turn(request, challenges.give, raw, store, authority, now, hours)


@router.post(
    "/acts",
    summary="List, export, hide, show or withdraw a key's results",
    responses=problems(400, 403, 404, 409, 410, 413, 415, 422, 429),
    openapi_extra=json_body(
        moderation.ActBody.model_json_schema(),
        {"envelope": envelope_example(ACT_PAYLOAD_TYPE)},
    ),
)
async def perform_act(
    request: Request, store: StoreDep, authority: AuthorityDep, raw: Body, now: Now
) -> ActAnswer:
    def spend(key_id: str) -> None:
        request.app.state.act_rate.spend(key_id, "acts and events that a key may send:")

    done = await in_turn(request, moderation.perform, raw, store, authority, now, spend)
    results = None
    if done.receipt is None and done.act.act in ("list", "export"):
        whole = done.act.act == "export"
        results = await in_turn(request, _results, store, done.act.key_id, whole)
    receipt = receipt_answer(done.receipt) if done.receipt else None
    return ActAnswer(done.act.act, done.act.result, receipt, results)


def _results(store: Store, key_id: str, whole: bool) -> tuple[OwnResult, ...]:
    """The results of a key's chain as their sender sees them; ``whole``: with what was signed."""
    with store.reading() as session:
        submissions = moderation.results_of_chain(session, key_id)
        rows = stored_results.rows_of(session, submissions)
        receipts = reader.receipts_of_results(session, [s.id for s in submissions]) if whole else {}
        return tuple(
            OwnResult(
                id=submission.id,
                **{name: getattr(row, name) for name in OF_ROW},
                **unit_fields(row.workload, row.samples_per_second),
                envelope=envelope_document(reader.envelope_of_result(submission))
                if whole
                else None,
                receipt=receipt_answer(receipts[submission.id]) if whole else None,
            )
            for submission, row in zip(submissions, rows, strict=True)
        )
