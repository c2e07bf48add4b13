"""Parameters of the addresses, with their limits. The address is the state of a page."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from bench_protocol.matrix import DataKind, DeviceKind, Precision, Recipe

from .problems import InvalidQuery

MOST_COMPARED = 20
MEND_IDS = "ids=A,B with hardware slugs, result ids, or setup-ID for the set-up of result ID"


def _empty_is_none(value: Any) -> Any:
    """An empty field of a form means that nothing was chosen."""
    return None if value == "" else value


Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,63}$")]
HardwareSlug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,400}$")]
Words = Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00-\x1f]*$")]
Empty = BeforeValidator(_empty_is_none)
BatchSize = Annotated[int, Field(ge=1, le=2**53 - 1)]


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


class BoardFilters(CellFilters):
    """Parameters of the leaderboard."""

    batch_size: Annotated[BatchSize | Literal["any"] | None, Empty] = Field(
        None, description="empty: each workload's default"
    )
    precision: Annotated[Precision | Literal["any"] | None, Empty] = Field(
        None, description="empty: float32"
    )
    group: Annotated[Literal["hardware", "setup"] | None, Empty] = Field(
        None, description="a place for each hardware (its fastest set-up), or for each set-up"
    )
    baseline: Annotated[HardwareSlug | None, Empty] = Field(
        None, description="hardware that speed-ups are against; empty: the slowest on the board"
    )


class BoardPageFilters(BoardFilters):
    """The same on a page, where a link from elsewhere may have added parameters of its own."""

    model_config = ConfigDict(extra="ignore")


class ResultFilters(CellFilters):
    """Parameters of the list of results."""

    batch_size: Annotated[BatchSize | None, Empty] = None
    precision: Annotated[Precision | None, Empty] = None
    status: Annotated[Literal["measured", "failed"] | None, Empty] = None
    rankable: bool | None = None
    machine_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")] | None = None
    key_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    run_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")] | None = None
    limit: int = Field(50, ge=1, le=200)
    cursor: Annotated[str, StringConstraints(max_length=200)] | None = Field(
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
