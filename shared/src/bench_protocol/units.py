"""Number and text types of the wire, each with its unit and limits."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

# Every integer on the wire stays below 2**53, so that any language's JSON reader keeps it exact.
LARGEST_INTEGER = 2**53 - 1

Count = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]
PositiveCount = Annotated[int, Field(ge=1, le=LARGEST_INTEGER)]
Bytes = Count
DurationNs = Annotated[int, Field(ge=1, le=LARGEST_INTEGER, description="nanoseconds, above zero")]
OffsetNs = Annotated[int, Field(ge=0, le=LARGEST_INTEGER, description="nanoseconds since a start")]
EnergyMj = Annotated[int, Field(ge=0, le=LARGEST_INTEGER, description="millijoules")]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,63}$")]
# RFC 3339, UTC, microseconds: 2026-11-21T03:42:00.000000Z
UtcTime = Annotated[
    str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$", max_length=27)
]
Version = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class Wire(BaseModel):
    """Base of every model on the wire: immutable, strict about types, unknown fields refused."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")
