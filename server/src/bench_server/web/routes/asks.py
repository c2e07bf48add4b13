"""``/api/v1/asks``: what is wanted again."""

from typing import Annotated

from fastapi import APIRouter, Query

from ...answers import asks
from ...answers.parameters import HardwareSlug
from .deps import Reading, problems

router = APIRouter(prefix="/api/v1/asks", tags=["hardware and machines"])


@router.get(
    "",
    summary="Set-ups that are wanted again, drawn daily, the most wanted first",
    responses=problems(422),
)
def list_asks(
    session: Reading,
    hardware: Annotated[
        HardwareSlug | None,
        Query(description="a hardware's slug", examples=["apple-m2-max-30-core-gpu"]),
    ] = None,
) -> asks.AsksAnswer:
    return asks.asks(session, hardware)
