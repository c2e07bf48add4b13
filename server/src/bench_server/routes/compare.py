"""``GET /api/v1/compare``."""

from typing import Annotated

from fastapi import APIRouter, Query

from ..comparing import CompareAnswer, compare
from ..filters import compared_ids
from .deps import Reading, problems

router = APIRouter(prefix="/api/v1", tags=["ranking"])


@router.get(
    "/compare",
    summary="Compare two to twenty hardware, set-ups or results, with intervals",
    responses=problems(404, 422),
)
def comparison(
    session: Reading,
    ids: Annotated[
        str,
        Query(
            max_length=8200,
            description="a,b: hardware slugs, result ids, setup-ID for the set-up of a result",
        ),
    ],
) -> CompareAnswer:
    return compare(session, compared_ids(ids))
