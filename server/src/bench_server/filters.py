"""Parameters of the addresses, with their limits. The address is the state of a page."""

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)

from bench_protocol.matrix import DataKind, DeviceKind, Precision, Recipe

from .attributes import NUMBERS, VERSIONS, WORDS, version_key
from .problems import InvalidQuery

ATTRIBUTES = (*WORDS, *VERSIONS, *NUMBERS)
MOST_COMPARED = 20
MOST_CONDITIONS = 8
MEND_IDS = (
    "ids=A,B with hardware slugs, ids of machines, results and published figures, or setup-ID for "
    "the set-up of result ID"
)
CONDITION = re.compile(r"([a-z_]+) ?(=|!=|<=|>=|<|>) ?([^\x00-\x1f]{1,100})")


def _empty_is_none(value: Any) -> Any:
    """An empty field of a form means that nothing was chosen."""
    return None if value == "" else value


Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,63}$")]
HardwareSlug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,400}$")]
Words = Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00-\x1f]*$")]
Empty = BeforeValidator(_empty_is_none)
BatchSize = Annotated[int, Field(ge=1, le=2**53 - 1)]
MachineId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
Cursor = Annotated[str, StringConstraints(max_length=200)]
Group = Literal["hardware", "machine", "result", "setup"]
Sort = Literal["time", "throughput", "energy", "mfu", "accuracy", "date"]


def _condition(text: str) -> str:
    """Check ``driver>=560.35``: a known attribute, an operator, and a value that fits it."""
    found = CONDITION.fullmatch(text)
    if found is None:
        raise ValueError("a condition is NAME, one of = != < <= > >=, and a value: driver>=560.35")
    name, operator, value = found.groups()
    if name not in ATTRIBUTES:
        raise ValueError(f"no attribute {name!r}; there are {', '.join(ATTRIBUTES)}")
    if name in NUMBERS and not (value.isascii() and value.isdecimal() and len(value) < 19):
        raise ValueError(f"{name} is a whole number, not {value[:40]!r}")
    if name in VERSIONS and version_key(value) is None:
        raise ValueError(f"{value[:40]!r} is no version")
    if name in WORDS and operator not in ("=", "!="):
        raise ValueError(f"{name} has no order; use = or !=")
    return text


Condition = Annotated[str, StringConstraints(max_length=160), AfterValidator(_condition)]


class CellFilters(BaseModel):
    """What both the board and the list of results can be narrowed to."""

    model_config = ConfigDict(extra="forbid")

    workload: Annotated[Name | None, Empty] = Field(None, description="name of a workload")
    framework: Annotated[Name | None, Empty] = None
    device: Annotated[DeviceKind | None, Empty] = None
    recipe: Annotated[Recipe | None, Empty] = None
    data: Annotated[DataKind | None, Empty] = Field(None, description="real or generated samples")
    hardware: Annotated[HardwareSlug | None, Empty] = Field(None, description="a hardware's slug")
    q: Annotated[Words | None, Empty] = Field(None, description="part of the hardware's name")
    machine_id: Annotated[MachineId | None, Empty] = Field(None, description="a machine's id")
    trust: Annotated[int, Field(ge=0, le=4)] | None = Field(
        None, description="lowest trust level that counts"
    )
    where: list[Condition] = Field(
        [],
        max_length=MOST_CONDITIONS,
        description="attributes of machine and software, all of which must hold: driver>=560.35, "
        f"os=macos; versions are ordered as versions. There are {', '.join(ATTRIBUTES)}",
        examples=[["framework_version>=2.18", "os=macos"]],
    )


class BoardFilters(CellFilters):
    """Parameters of the leaderboard."""

    batch_size: Annotated[BatchSize | Literal["any"] | None, Empty] = Field(
        None, description="empty: each workload's default"
    )
    precision: Annotated[Precision | Literal["any"] | None, Empty] = Field(
        None, description="empty: float32"
    )
    group: Annotated[Group | None, Empty] = Field(
        None,
        description="a place for each hardware (its best set-up; the default), machine, or result, "
        "or for every set-up of each hardware",
    )
    sort: Annotated[Sort | None, Empty] = Field(
        None,
        description="time and throughput: fastest first (the default); energy: least joules per "
        "sample; mfu, accuracy: highest; date: newest. Rows without the figure are left out",
    )
    baseline: Annotated[HardwareSlug | None, Empty] = Field(
        None,
        description="hardware that speed-ups are against; empty: the published i7-8700 where the "
        "board has it, else the slowest on the board",
    )
    limit: int = Field(200, ge=1, le=500, description="most rows of a workload")
    cursor: Annotated[Cursor | None, Empty] = Field(
        None, description="next_cursor of the page before; needs workload"
    )


class BoardPageFilters(BoardFilters):
    """The same on a page, where a link from elsewhere may have added parameters of its own."""

    model_config = ConfigDict(extra="ignore")


class HistoryFilters(BaseModel):
    """What leaves one of a machine's cells."""

    model_config = ConfigDict(extra="forbid")

    workload: Annotated[Name | None, Empty] = None
    framework: Annotated[Name | None, Empty] = None
    device: Annotated[DeviceKind | None, Empty] = None
    recipe: Annotated[Recipe | None, Empty] = None
    batch_size: Annotated[BatchSize | None, Empty] = None
    precision: Annotated[Precision | None, Empty] = None
    data: Annotated[DataKind | None, Empty] = None


class ListFilters(BaseModel):
    """Parameters of the lists of hardware and machines."""

    model_config = ConfigDict(extra="forbid")

    q: Annotated[Words | None, Empty] = Field(None, description="part of the hardware's name")
    limit: int = Field(50, ge=1, le=200)
    cursor: Annotated[Cursor | None, Empty] = Field(
        None, description="next_cursor of the page before"
    )


class ResultFilters(CellFilters):
    """What the results of a list or an export can be narrowed to."""

    batch_size: Annotated[BatchSize | None, Empty] = None
    precision: Annotated[Precision | None, Empty] = None
    status: Annotated[Literal["measured", "failed"] | None, Empty] = None
    rankable: bool | None = None
    key_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    run_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")] | None = None


class ResultPageFilters(ResultFilters):
    """Parameters of the list of results."""

    limit: int = Field(50, ge=1, le=200)
    cursor: Annotated[Cursor | None, Empty] = Field(
        None, description="next_cursor of the page before"
    )


def compared_ids(text: str, at_least: int = 2) -> tuple[str, ...]:
    """Read ``ids=a,b,c``: hardware slugs, ids of results and of set-ups, each once.

    Raises:
        InvalidQuery: fewer than ``at_least``, more than twenty, or not of that form.
    """
    ids = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not at_least <= len(ids) <= MOST_COMPARED:
        raise InvalidQuery(
            f"ids names {len(ids)} different things, 2 to {MOST_COMPARED} can be compared",
            field="ids",
            mend=MEND_IDS,
        )
    for item in ids:
        if len(item) > 400 or not item.isascii() or not item.replace("-", "").isalnum():
            raise InvalidQuery(
                f"{item[:100]!r} is neither a hardware slug nor a result id",
                field="ids",
                mend=MEND_IDS,
            )
    return ids
