"""Query parameters with their limits. The address is the state of a page."""

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
)

from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.matrix import DataKind, DeviceKind, Precision, Recipe
from bench_protocol.payload.figures import TimingKind

from ..db.environments import NUMBERS, VERSIONS, WORDS, version_key
from ..errors import InvalidQuery
from . import cursors
from .families import FAMILIES

ATTRIBUTES = (*WORDS, *VERSIONS, *NUMBERS)
MOST_COMPARED = 20
MOST_CONDITIONS = 8
HINT_IDS = (
    "ids=A,B with hardware slugs, ids of machines, results and published figures, or setup-ID for "
    "the set-up of result ID"
)
CONDITION = re.compile(r"([a-z_]+) ?(=|!=|<=|>=|<|>) ?([^\x00-\x1f]{1,100})")


def _empty_is_none(value: Any) -> Any:
    """An empty field of a form means that nothing was chosen."""
    return None if value == "" else value


Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,63}$")]
HardwareSlug = Annotated[
    str, StringConstraints(min_length=1, max_length=400, pattern=r"^[^\x00-\x1f]*$")
]
Words = Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00-\x1f]*$")]
Empty = BeforeValidator(_empty_is_none)
BatchSize = Annotated[int, Field(ge=1, le=2**53 - 1)]
KeyId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
MachineId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
Cursor = Annotated[str, StringConstraints(max_length=1000)]
Group = Literal["hardware", "machine", "result", "setup"]
RankBy = Literal["time", "throughput", "energy", "mfu", "accuracy"]
# Fields of an answer that a board is sorted by (.orders).
SORT_FIELDS = (
    *("hardware", "samples_per_second", "epoch_seconds", "speed_up", "joules_per_epoch", "mfu"),
    *("accuracy", "spread", "trust_level", "newest_at"),
)
SORTS = tuple(sign + name for name in SORT_FIELDS for sign in ("", "-"))


def _sortable(text: str) -> str:
    if text not in SORTS:
        raise ValueError(
            f"no sort {text[:40]!r}; there are {', '.join(SORT_FIELDS)}, and each with a - before "
            "it for the greatest first"
        )
    return text


Sort = Annotated[
    str, AfterValidator(_sortable), WithJsonSchema({"type": "string", "enum": [*SORTS]})
]


def _condition(text: str) -> str:
    """Check ``driver>=560.35``: a known attribute, an operator, and a value that fits it."""
    match = CONDITION.fullmatch(text)
    if match is None:
        raise ValueError("a condition is NAME, one of = != < <= > >=, and a value: driver>=560.35")
    name, operator, value = match.groups()
    if name not in ATTRIBUTES:
        raise ValueError(f"no attribute {name!r}; there are {', '.join(ATTRIBUTES)}")
    if name in NUMBERS and not (value.isascii() and value.isdecimal() and len(value) < 19):
        raise ValueError(f"{name} is a whole number, not {value[:40]!r}")
    if name in VERSIONS and version_key(value) is None:
        raise ValueError(f"{value[:40]!r} is not a version, such as 2.18.1")
    if name in WORDS and operator not in ("=", "!="):
        raise ValueError(f"{name} has no order; use = or !=")
    return text


Condition = Annotated[str, StringConstraints(max_length=160), AfterValidator(_condition)]


WORKLOADS = tuple(workload.name for workload in CATALOGUE)


def _in_catalogue(name: str | None) -> str | None:
    if name is not None and name not in WORKLOADS:
        raise ValueError(f"no workload {name!r}; there are {', '.join(WORKLOADS)}")
    return name


def _in_families(name: str) -> str:
    if name not in FAMILIES:
        raise ValueError(f"no family {name[:40]!r}; there are {', '.join(FAMILIES)}")
    return name


FamilyName = Annotated[
    str, AfterValidator(_in_families), WithJsonSchema({"type": "string", "enum": [*FAMILIES]})
]

# Filters that several queries share; each None if nothing was chosen.
AWorkload = Annotated[
    Name | None,
    Empty,
    AfterValidator(_in_catalogue),
    Field(description="name of a workload", examples=["mnist-cnn"]),
]
AFramework = Annotated[
    Name | None, Empty, Field(description="name of a framework", examples=["mlx"])
]
ADevice = Annotated[
    DeviceKind | None, Empty, Field(description="kind of device", examples=["metal"])
]
ARecipe = Annotated[
    Recipe | None,
    Empty,
    Field(description="how the training loop is written (/methodology)", examples=["tuned"]),
]
AData = Annotated[
    DataKind | None, Empty, Field(description="real or generated samples", examples=["real"])
]
ATiming = Annotated[
    TimingKind | None,
    Empty,
    Field(description="long: 10 s or more on a CPU, 30 s on a GPU; else short", examples=["long"]),
]
ABatchSize = Annotated[
    BatchSize | None, Empty, Field(description="samples in a step", examples=[256])
]
APrecision = Annotated[
    Precision | None, Empty, Field(description="of the arithmetic", examples=["float32"])
]
AHardware = Annotated[
    HardwareSlug | None,
    Empty,
    Field(description="a hardware's slug", examples=["apple-m2-max-30-core-gpu"]),
]
PartOfName = Annotated[
    Words | None, Empty, Field(description="part of the hardware's name", examples=["m2 max"])
]
Limit = Annotated[int, Field(ge=1, le=200, description="how many at most", examples=[50])]


class Parameters(BaseModel):
    """Parameters of an address; another one is refused."""

    model_config = ConfigDict(extra="forbid")


class SetupFilters(Parameters):
    """Filters by workload and set-up."""

    workload: AWorkload = None
    framework: AFramework = None
    device: ADevice = None
    recipe: ARecipe = None
    data: AData = None
    timing: ATiming = None


class CellFilters(SetupFilters):
    """Filters of both the board and the list of results."""

    hardware: AHardware = None
    q: PartOfName = None
    family: Annotated[FamilyName | None, Empty] = Field(
        None, description="a family of hardware", examples=["apple-m"]
    )
    machine_id: Annotated[MachineId | None, Empty] = Field(
        None, description="a machine's id", examples=["0f1e2d3c4b5a6978"]
    )
    trust: Annotated[int, Field(ge=0, le=4)] | None = Field(
        None, description="lowest trust level of a row", examples=[3]
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
        None, description="empty: each workload's default", examples=[256, "any"]
    )
    precision: Annotated[Precision | Literal["any"] | None, Empty] = Field(
        None, description="empty: float32", examples=["any"]
    )
    group: Annotated[Group | None, Empty] = Field(
        None,
        description="a place for each hardware (its best set-up in its best tier; the default), "
        "machine, or result, or for every set-up of each hardware",
        examples=["setup"],
    )
    rank_by: Annotated[RankBy | None, Empty] = Field(
        None,
        description="what ranks rows within a tier. time and throughput: fastest first (the "
        "default); energy: least joules per sample, within one energy_scope; mfu, accuracy: "
        "highest. Rows without the figure are left out",
        examples=["energy"],
    )
    sort: Annotated[Sort | None, Empty] = Field(
        None,
        description="the field that rows are sorted by within a tier, smallest first, with a - "
        "before it greatest first; ranks stay. Empty: by rank. With group=result: newest_at alone",
        examples=["-spread"],
    )
    energy_scope: Annotated[Name | None, Empty] = Field(
        None,
        description="what the energy is of: gpu, cpu_package, soc, which do not compare; empty "
        "with rank_by=energy: the one that most of the board has (name it to follow a cursor)",
        examples=["gpu"],
    )
    baseline: Annotated[HardwareSlug | None, Empty] = Field(
        None,
        description="hardware that speed-ups are against; empty: the published i7-8700 where the "
        "board has it, else the slowest on the board",
        examples=["published-intel-core-i7-8700"],
    )
    limit: int = Field(200, ge=1, le=500, description="most rows of a workload", examples=[50])
    cursor: Annotated[Cursor | None, Empty] = Field(
        None,
        description="next_cursor of the page before; needs workload",
        examples=[cursors.write(0, 0, 1234.5, 1234.5, "0" * 32)],
    )


class BoardPageFilters(BoardFilters):
    """The same on a page, where a link from another site may have added parameters."""

    model_config = ConfigDict(extra="ignore")


class HistoryFilters(SetupFilters):
    """Filters that select one of a machine's cells."""

    batch_size: ABatchSize = None
    precision: APrecision = None


class ListFilters(Parameters):
    """Parameters of the lists of hardware and machines."""

    q: PartOfName = None
    limit: Limit = 50
    cursor: Annotated[Cursor | None, Empty] = Field(
        None,
        description="next_cursor of the page before",
        examples=[cursors.write("apple-m2-max-30-core-gpu")],
    )


class ResultFilters(CellFilters):
    """Filters of a list or an export of results."""

    batch_size: ABatchSize = None
    precision: APrecision = None
    status: Annotated[Literal["measured", "failed"] | None, Empty] = Field(
        None, description="what a repeat came to", examples=["failed"]
    )
    ranked: Annotated[bool | None, Empty] = Field(
        None, description="whether it is ranked", examples=[True]
    )
    key_id: KeyId | None = Field(
        None, description="the key that signed", examples=["0f1e2d3c4b5a6978" * 4]
    )
    run_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")] | None = Field(
        None, description="the run it was measured in", examples=["0f1e2d3c4b5a6978" * 2]
    )


class ResultPageFilters(ResultFilters):
    """Parameters of the list of results."""

    verdicts: bool = Field(
        True,
        description="false: leave the findings of the checks out, nine tenths of an answer",
        examples=[False],
    )
    limit: Limit = 50
    cursor: Annotated[Cursor | None, Empty] = Field(
        None,
        description="next_cursor of the page before",
        examples=[cursors.write("2026-11-21T04:00:00+00:00", "0f1e2d3c4b5a6978")],
    )


class ListPageFilters(ListFilters):
    """The same on a page, where a link from another site may have added parameters."""

    model_config = ConfigDict(extra="ignore")


class ResultListFilters(ResultPageFilters):
    """The same on a page, where a link from another site may have added parameters."""

    model_config = ConfigDict(extra="ignore")


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
            hint=HINT_IDS,
        )
    for item in ids:
        if len(item) > 400 or not item.isascii() or not item.replace("-", "").isalnum():
            raise InvalidQuery(
                f"{item[:100]!r} is neither a hardware slug nor a result id",
                field="ids",
                hint=HINT_IDS,
            )
    return ids
