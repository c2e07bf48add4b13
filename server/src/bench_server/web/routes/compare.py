"""``GET /api/v1/compare``."""

import math
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BeforeValidator

from ...answers.compared_things import compared_ids
from ...answers.comparison import compare
from ...answers.prices import Prices
from ...answers.types.comparison import Across, CompareAnswer, Mode
from ...errors import InvalidQuery
from ...price_list import Positive as Price
from .deps import Reading, SettingsDep, problems

router = APIRouter(prefix="/api/v1", tags=["ranking"])
PRICE = "price."
PRICE_PARAMETER = {
    "name": "price.ID",
    "in": "query",
    "required": False,
    "description": "price of the item with this id, one parameter each, all in one currency: "
    "price.nvidia-h200=31000",
    "schema": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e15, "examples": [31000]},
}


def reader_prices(request: Request) -> dict[str, float]:
    """Every ``price.ID`` of the address. Raises InvalidQuery if one is not a positive number."""
    price_by_id = {}
    for name, value in request.query_params.multi_items():
        if name.startswith(PRICE) and value:  # forms also send their empty fields
            try:
                price_by_id[name.removeprefix(PRICE)] = price = float(value)
            except ValueError:
                price = math.nan
            if not 0 < price <= 1e15:
                raise InvalidQuery(
                    f"{name[:100]} is {value[:40]!r}, a price is a number above zero",
                    field=name[:100],
                )
    return price_by_id


def prices(
    settings: SettingsDep,
    of_reader: Annotated[dict[str, float], Depends(reader_prices)],
    energy_price: Annotated[
        Price | None,
        BeforeValidator(lambda value: None if value == "" else value),
        Query(
            description="price of a kilowatt-hour, for the cost of an epoch's energy",
            examples=[0.3],
        ),
    ] = None,
) -> Prices:
    """The reader's prices and the operator's."""
    return Prices(of_reader, settings.prices, energy_price)


PricesDep = Annotated[Prices, Depends(prices)]


def comparison(
    session: Reading,
    prices: PricesDep,
    ids: Annotated[
        str,
        Query(
            max_length=8200,
            description="a,b: hardware slugs, ids of machines, results and published figures, or "
            "setup-ID for the set-up of a result",
            examples=["nvidia-h200,apple-m2-max-30-core-gpu"],
        ),
    ],
    across: Annotated[
        Across | None,
        Query(
            description="compare set-ups or results that differ in this axis; the answer says so",
            examples=["batch_size"],
        ),
    ] = None,
    mode: Annotated[
        Mode | None,
        Query(
            description="best: each hardware or machine in its place on each board (the default); "
            "same_software: rows of equal framework and recipe",
            examples=["same_software"],
        ),
    ] = None,
) -> CompareAnswer:
    return compare(session, compared_ids(ids), prices, across, mode)


Comparison = Annotated[CompareAnswer, Depends(comparison)]


@router.get(
    "/compare",
    summary="Compare two to twenty hardware, machines, set-ups or results, with intervals",
    responses=problems(410, 422),
    openapi_extra={"parameters": [PRICE_PARAMETER]},
)
def get_comparison(answer: Comparison) -> CompareAnswer:
    return answer
