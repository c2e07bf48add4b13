"""The studies: ``/frameworks``, ``/cpu-vs-gpu``, ``/batch-size``, ``/trends`` of the API."""

from typing import Annotated

from fastapi import APIRouter, Query

from ...answers.studies.batch_size import BatchAnswer, batch_sizes
from ...answers.studies.common import HardwareChoice
from ...answers.studies.cpu_vs_gpu import PairAnswer, PairChoice, cpu_against_gpu
from ...answers.studies.frameworks import FrameworksAnswer, frameworks
from ...answers.studies.trends import TrendChoice, TrendsAnswer, trends
from .deps import Reading, problems

router = APIRouter(prefix="/api/v1", tags=["studies"])
OfHardware = Annotated[HardwareChoice, Query()]
OfPair = Annotated[PairChoice, Query()]
OfTrend = Annotated[TrendChoice, Query()]


@router.get(
    "/frameworks",
    summary="Frameworks and recipes on one hardware, at equal batch",
    responses=problems(422),
)
def get_frameworks(session: Reading, choice: OfHardware) -> FrameworksAnswer:
    return frameworks(session, choice)


@router.get("/cpu-vs-gpu", summary="CPU against GPU by the work in a step", responses=problems(422))
def get_cpu_vs_gpu(session: Reading, choice: OfPair) -> PairAnswer:
    return cpu_against_gpu(session, choice)


@router.get("/batch-size", summary="Speed by batch size on one hardware", responses=problems(422))
def get_batch_sizes(session: Reading, choice: OfHardware) -> BatchAnswer:
    return batch_sizes(session, choice)


@router.get(
    "/trends",
    summary="Speed of one hardware by version of framework, driver or system",
    responses=problems(404, 422),
)
def get_trends(session: Reading, choice: OfTrend) -> TrendsAnswer:
    return trends(session, choice)
