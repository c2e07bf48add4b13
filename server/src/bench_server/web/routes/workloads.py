"""``GET /api/v1/workloads``."""

from fastapi import APIRouter

from bench_protocol.catalogue.catalogue import CATALOGUE

from ...answers.types.leaderboard import WorkloadAnswer, workload_answer

router = APIRouter(prefix="/api/v1", tags=["workloads"])


@router.get("/workloads", summary="Every workload of this server's catalogue")
def list_workloads() -> list[WorkloadAnswer]:
    return [workload_answer(workload) for workload in CATALOGUE]
