"""The operator's price list: a TOML file that ``BENCH_SERVER_PRICES`` names."""

import tomllib
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MOST = 1e15
Positive = Annotated[float, Field(gt=0, le=MOST, allow_inf_nan=False)]


class PriceList(BaseModel):
    """Prices of hardware by slug, and of a kilowatt-hour, on one day in one currency."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    date: date
    hardware: dict[str, Positive] = {}
    energy_per_kwh: Positive | None = None


def read(path: Path | str) -> PriceList:
    """Read a price list.

    Raises:
        ValueError: it cannot be read, or is no price list; the message says where.
    """
    try:
        return PriceList.model_validate(tomllib.loads(Path(path).read_text("utf-8")))
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error
