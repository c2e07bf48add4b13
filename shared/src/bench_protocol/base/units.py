"""Number and text types of the wire, each with its unit and limits."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)
from pydantic_core import PydanticCustomError

from . import names, strict_json
from .errors import first_invalid_field

# Every integer on the wire stays below 2**53, so that any language's JSON reader keeps it exact.
LARGEST_INTEGER = 2**53 - 1

Count = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]
PositiveCount = Annotated[int, Field(ge=1, le=LARGEST_INTEGER)]
Bytes = Count
# The index of a device within its kind.
DeviceIndex = Annotated[int, Field(ge=0, le=1023)]
DurationNs = Annotated[int, Field(ge=1, le=LARGEST_INTEGER, description="nanoseconds, above zero")]
OffsetNs = Annotated[int, Field(ge=0, le=LARGEST_INTEGER, description="nanoseconds since a start")]
EnergyMj = Annotated[int, Field(ge=0, le=LARGEST_INTEGER, description="millijoules")]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


def _refused(found: names.Fault | None, text: str) -> str:
    if found is not None:
        raise PydanticCustomError("name", "it {problem}: {fix}", found._asdict())
    return text


# A database may refuse NUL, ESC steers the terminal that prints it, U+202E turns a title around.
Seen = AfterValidator(lambda text: _refused(names.unseen(text), text))
Named = AfterValidator(lambda text: _refused(names.fault(text), text))
Normal = AfterValidator(names.normal)
Text = Annotated[str, StringConstraints(min_length=1, max_length=200), Seen]
# A name by which people know something.
Name = Annotated[str, StringConstraints(min_length=1, max_length=names.LONGEST), Named]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,63}$")]
Version = Annotated[str, StringConstraints(min_length=1, max_length=64), Seen]


def _moment(text: str) -> str:
    datetime.fromisoformat(text)  # refuses 30 February with a ValueError
    return text


# RFC 3339, UTC, microseconds: 2026-11-21T03:42:00.000000Z. [0-9], because \d matches digits of
# every script.
UtcTime = Annotated[
    str,
    StringConstraints(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$",
        max_length=27,
    ),
    AfterValidator(_moment),
]


def utc_text(moment: datetime) -> str:
    """A time in the wire's form: RFC 3339, UTC, microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def plain_text(text: str, limit: int = 200) -> str:
    """Clean a text from outside for the wire (:func:`.names.without_unseen`), at most ``limit``
    long."""
    # Half of a pair becomes "?".
    return names.without_unseen(text.encode("utf-8", "replace").decode())[:limit]


class Wire(BaseModel):
    """Base of every model on the wire: immutable, strict about types, unknown fields refused."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """Read a document of this kind.

        Raises:
            MalformedJson: not strict JSON.
            InvalidField: a field breaks the schema.
        """
        strict_json.loads(raw)
        try:
            return cls.model_validate_json(raw)
        except ValidationError as error:
            raise first_invalid_field(error) from None

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields replaced; values cached from the old fields are dropped."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied
