"""Models of the answers that an audit reads. Nothing in an answer is trusted, its form included."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AwareDatetime, Field, FiniteFloat, StringConstraints, TypeAdapter
from pydantic import ValidationError as WrongForm
from typing_extensions import TypedDict

from bench_protocol.base.errors import InvalidField, first_invalid_field

from ..answers.types.trust import StatedBreak
from ..checks.verdicts import Finding

HINT = "save it again (verify-log ADDRESS --save DUMP), or report it to the server's operator"
Answer = TypeVar("Answer")
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Record(TypedDict):
    """An entry of the log, as in :class:`..answers.types.trust.LogRecord`."""

    log_index: Annotated[int, Field(ge=0)]
    kind: Literal["result", "key_event", "act", "recomputation"]
    commitment: Sha256
    logged_at: AwareDatetime
    salt: Sha256 | None
    envelope: dict[str, Any] | None
    result_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")] | None
    hidden: bool
    challenge: dict[str, Any] | None
    outlier: Finding | None
    trust_level: Annotated[int, Field(ge=0, le=4)] | None
    ranked: bool | None
    checkpoint: str | None


class Records(TypedDict):
    """A page of entries."""

    as_of: int | None
    records: list[Record]
    next_start: int | None


class State(TypedDict):
    """The log, and the server's keys."""

    origin: str
    key: str
    challenge_key: str
    operator_key: str
    breaks: list[StatedBreak]


class BoardRow(TypedDict):
    """A set-up of a hardware on a board."""

    published: bool
    hardware_slug: str
    framework: str
    device: str
    recipe: str
    batch_size: int
    precision: str
    data: str
    timing: str
    samples_per_second: FiniteFloat
    trust_level: int
    confirmed_owners: int
    owners: int
    machines: int
    runs: int
    repeats: int
    held: bool


class Board(TypedDict):
    """A page of a board."""

    as_of: int
    rows: list[BoardRow]
    next_cursor: str | None


class Cosigned(TypedDict):
    """A checkpoint that witnesses signed."""

    size: int
    checkpoint: str


class CosignedDays(TypedDict):
    """The cosigned checkpoints of the last days."""

    checkpoints: list[Cosigned]


RECORDS = TypeAdapter(Records)
STATE = TypeAdapter(State)
BOARD = TypeAdapter(Board)
COSIGNED = TypeAdapter(CosignedDays)


def read(form: TypeAdapter[Answer], path: str, raw: bytes) -> Answer:
    """The answer at a path.

    Raises:
        InvalidField: it has another form; the message names path, line or field, and limit.
    """
    try:
        return form.validate_json(raw)
    except WrongForm as error:
        wrong = first_invalid_field(error)
        raise InvalidField(f"{path}: {wrong.detail}", field=wrong.field, hint=HINT) from None
