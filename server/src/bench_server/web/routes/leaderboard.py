"""``GET /api/v1/leaderboard``."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import TypeAdapter

from ...answers.leaderboard import leaderboard
from ...answers.selection import BoardQuery
from ...answers.types.leaderboard import LeaderboardAnswer, flat
from ...projection import position
from .deps import Reading, SettingsDep, problems
from .listing import listing

router = APIRouter(prefix="/api/v1", tags=["ranking"])
ANSWER = TypeAdapter(LeaderboardAnswer)


@router.get(
    "/leaderboard",
    summary="How fast hardware trains: ranked boards, one a workload",
    response_model=LeaderboardAnswer,
    responses=problems(422),
)
def get_leaderboard(
    request: Request,
    session: Reading,
    settings: SettingsDep,
    filters: Annotated[BoardQuery, Query()],
) -> Response:
    as_of = position.read(session.connection()).next_index
    found = leaderboard(session, filters, settings.baseline)
    answer = flat(found.boards, found.scores, as_of)
    # FastAPI would validate each of the rows again, for a quarter of the time of the answer.
    return listing(request, ANSWER, answer, "rows", filters)
