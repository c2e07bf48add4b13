"""The studies: ``/frameworks``, ``/cpu-vs-gpu``, ``/batch-size``, ``/trends`` of the API."""

from typing import Annotated

from fastapi import APIRouter, Query

from ...answers import studies
from .deps import Reading, problems

router = APIRouter(prefix="/api/v1", tags=["studies"])
OfHardware = Annotated[studies.HardwareChoice, Query()]
OfPair = Annotated[studies.PairChoice, Query()]
OfTrend = Annotated[studies.TrendChoice, Query()]


@router.get(
    "/frameworks",
    summary="Frameworks and recipes on one hardware, at equal batch",
    responses=problems(422),
)
def get_frameworks(session: Reading, choice: OfHardware) -> studies.FrameworksAnswer:
    return studies.frameworks(session, choice)


@router.get("/cpu-vs-gpu", summary="CPU against GPU by the work in a step", responses=problems(422))
def get_cpu_vs_gpu(session: Reading, choice: OfPair) -> studies.PairAnswer:
    return studies.cpu_against_gpu(session, choice)


@router.get("/batch-size", summary="Speed by batch size on one hardware", responses=problems(422))
def get_batch_sizes(session: Reading, choice: OfHardware) -> studies.BatchAnswer:
    return studies.batch_sizes(session, choice)


@router.get(
    "/trends",
    summary="Speed of one hardware by version of framework, driver or system",
    responses=problems(404, 422),
)
def get_trends(session: Reading, choice: OfTrend) -> studies.TrendsAnswer:
    return studies.trends(session, choice)
