"""Types of query parameters with their limits. The address is the state of a page."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from bench_protocol.base.units import Seen
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.matrix import DataKind, DeviceKind, Precision, Recipe
from bench_protocol.payload.figures import TimingKind

from .families import FAMILIES


class NotListed(ValueError):
    """A word that is none of a fixed list. ``wanted``: it; ``names``: the list."""

    def __init__(self, kind: str, wanted: str, names: Sequence[str], more: str = "") -> None:
        super().__init__(f"no {kind} {wanted!r}; there are {', '.join(names)}{more}")
        self.wanted, self.names = wanted, names


Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,63}$")]
HardwareSlug = Annotated[str, StringConstraints(min_length=1, max_length=400), Seen]
OwnerName = Annotated[str, StringConstraints(min_length=1, max_length=80), Seen]
Words = Annotated[str, StringConstraints(max_length=100), Seen]
T = TypeVar("T")
# An empty field of a form means that nothing was chosen.
Empty = BeforeValidator(lambda value: None if value == "" else value)
Chosen = Annotated[T | None, Empty]
BatchSize = Annotated[int, Field(ge=1, le=2**53 - 1)]
KeyId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
MachineId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
Cursor = Annotated[str, StringConstraints(max_length=1000)]
Group = Literal["hardware", "machine", "setup"]
RankBy = Literal["time", "throughput", "energy", "mfu"]
SORT_FIELDS = (
    *("hardware", "samples_per_second", "epoch_seconds", "speed_up", "joules_per_epoch", "mfu"),
    *("accuracy", "spread", "backing", "trust_level", "newest_at", "price", "memory_bytes"),
)
SORTS = tuple(sign + name for name in SORT_FIELDS for sign in ("", "-"))


def _sortable(text: str) -> str:
    if text not in SORTS:
        more = ", and each with a - before it for the greatest first"
        raise NotListed("sort", text[:40], SORT_FIELDS, more)
    return text


Sort = Annotated[
    str, AfterValidator(_sortable), WithJsonSchema({"type": "string", "enum": [*SORTS]})
]


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except OverflowError:
        raise ValueError("a moment from year 1 to 9999 in UTC") from None


# A day is its first moment; without a time zone it is in UTC.
Moment = Annotated[datetime, AfterValidator(_in_utc)]


WORKLOADS = tuple(workload.name for workload in CATALOGUE)


def _in_catalogue(name: str | None) -> str | None:
    if name is not None and name not in WORKLOADS:
        raise NotListed("workload", name, WORKLOADS)
    return name


def _in_families(name: str) -> str:
    if name not in FAMILIES:
        raise NotListed("family", name[:40], tuple(FAMILIES))
    return name


FamilyName = Annotated[
    str, AfterValidator(_in_families), WithJsonSchema({"type": "string", "enum": [*FAMILIES]})
]

Part = Literal["others", "scores", "unranked"]
PARTS: tuple[Part, ...] = get_args(Part)


def _are_parts(text: str) -> str:
    for name in text.split(","):
        if name not in PARTS:
            raise NotListed("part", name[:40], PARTS)
    return text


Parts = Annotated[str, AfterValidator(_are_parts)]

# Filters that several queries share; each None if nothing was chosen.
AWorkload = Annotated[
    Chosen[Name],
    AfterValidator(_in_catalogue),
    Field(description="name of a workload", examples=["mnist-cnn"]),
]
AFramework = Annotated[Chosen[Name], Field(description="name of a framework", examples=["mlx"])]
ADevice = Annotated[Chosen[DeviceKind], Field(description="kind of device", examples=["metal"])]
ARecipe = Annotated[
    Chosen[Recipe],
    Field(description="how the training loop is written (/methodology)", examples=["tuned"]),
]
AData = Annotated[
    Chosen[DataKind], Field(description="real or generated samples", examples=["real"])
]
ATiming = Annotated[
    Chosen[TimingKind],
    Field(description="long: 10 s or more on a CPU, 30 s on a GPU; else short", examples=["long"]),
]
ABatchSize = Annotated[Chosen[BatchSize], Field(description="samples in a step", examples=[256])]
APrecision = Annotated[
    Chosen[Precision], Field(description="of the arithmetic", examples=["float32"])
]
AHardware = Annotated[
    Chosen[HardwareSlug],
    Field(description="a hardware's slug", examples=["apple-m2-max-30-core-gpu"]),
]
AnOwner = Annotated[
    Chosen[OwnerName], Field(description="an owner's whole name", examples=["Basel lab"])
]
PartOfName = Annotated[
    Chosen[Words],
    Field(
        description="words of the hardware's name or slug, the last or its beginning; a part of "
        "its owner's name; the first four or more digits of a machine's or result's id",
        examples=["m2 max"],
    ),
]
Limit = Annotated[int, Field(ge=1, le=200, description="how many at most", examples=[50])]
