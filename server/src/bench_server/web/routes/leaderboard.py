"""``GET /api/v1/leaderboard``."""

from typing import Annotated

from fastapi import APIRouter, Query

from ...answers.filters import BoardFilters
from ...answers.leaderboard import leaderboard
from ...answers.types import LeaderboardAnswer, flat
from ...projection import position
from .deps import Reading, problems

router = APIRouter(prefix="/api/v1", tags=["ranking"])


@router.get(
    "/leaderboard",
    summary="How fast hardware trains: ranked boards, one a workload",
    responses=problems(404, 422),
)
def boards(session: Reading, filters: Annotated[BoardFilters, Query()]) -> LeaderboardAnswer:
    return flat(leaderboard(session, filters), position.read(session.connection()).next_index)
