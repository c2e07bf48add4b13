"""``GET /api/v1/leaderboard`` and ``GET /api/v1/workloads``."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import TypeAdapter

from bench_protocol.catalogue.catalogue import CATALOGUE

from ...answers.board_filters import BoardQuery
from ...answers.leaderboard import leaderboard
from ...answers.parameters import PARTS
from ...answers.prices import Prices
from ...answers.types.leaderboard import LeaderboardAnswer, WorkloadAnswer, flat, workload_answer
from ...projection import position
from .deps import Reading, SettingsDep, problems
from .listing import listing

router = APIRouter(prefix="/api/v1")
ANSWER = TypeAdapter(LeaderboardAnswer)


@router.get(
    "/leaderboard",
    tags=["ranking"],
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
    prices = Prices({}, settings.prices)
    found = leaderboard(session, filters, settings.baseline, filters.parts, prices)
    answer = flat(found.boards, found.scores, as_of)
    left_out = {*PARTS} - filters.parts
    return listing(
        request, ANSWER, answer, {"rows": {"__all__": left_out}} | dict.fromkeys(left_out, True)
    )


@router.get("/workloads", tags=["workloads"], summary="Every workload of this server's catalogue")
def list_workloads() -> list[WorkloadAnswer]:
    return [workload_answer(workload) for workload in CATALOGUE]
