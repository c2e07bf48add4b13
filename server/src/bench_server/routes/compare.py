"""``GET /api/v1/compare``."""

from typing import Annotated

from fastapi import APIRouter, Query

from ..comparing import CompareAnswer, compare
from ..filters import compared_ids
from .deps import Reading, problems

router = APIRouter(prefix="/api/v1", tags=["ranking"])


@router.get(
    "/compare",
    summary="Compare two to twenty hardware or results, cell by cell, with intervals",
    responses=problems(404, 422),
)
def comparison(
    session: Reading,
    ids: Annotated[str, Query(max_length=8200, description="hardware slugs or result ids: a,b")],
) -> CompareAnswer:
    return compare(session, compared_ids(ids))
