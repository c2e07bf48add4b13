"""The leaderboard's form: each filter's label and options, and its words in the heading."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...answers.board_filters import BoardFilters
from ...answers.families import FAMILIES
from .common import Choice, choices

Options = Sequence[tuple[str, str]]
DEVICES = {"cuda": "on CUDA", "metal": "on Metal", "cpu": "on CPUs"}


class Field(NamedTuple):
    """``words``: a choice in the heading, None where it is not named there."""

    name: str
    label: str
    options: Options
    words: Callable[[Any], str] | None


def _any_of(*names: str) -> Options:
    return (("", "any"), *((name, name) for name in names))


# The form and the heading have this order.
FIELDS = (
    Field(
        "device",
        "Device",
        (("", "any"), ("cuda", "CUDA"), ("metal", "Metal"), ("cpu", "CPU")),
        DEVICES.__getitem__,
    ),
    Field("framework", "Framework", _any_of(), "with {}".format),
    Field("recipe", "Recipe", _any_of("naive", "pipeline", "tuned"), str),
    Field("batch_size", "Batch size", (("", "default"), ("any", "any")), "batch {:,}".format),
    Field(
        "precision",
        "Precision",
        (
            *(("", "float32"), ("tf32", "tf32"), ("mixed_float16", "mixed float16")),
            *(("mixed_bfloat16", "mixed bfloat16"), ("any", "any")),
        ),
        lambda value: f"in {value.replace('_', ' ')}",
    ),
    Field("data", "Data", _any_of("real", "generated"), "{} data".format),
    Field("timing", "Timing", _any_of("long", "short"), "{} timings".format),
    Field(
        "backing",
        "Evidence",
        (("", "any"), ("several", "two owners or more"), ("confirmed", "two confirmed owners")),
        {"several": "of several owners", "confirmed": "only confirmed"}.__getitem__,
    ),
    Field("baseline", "Speed-up against", (("", "default"),), None),
)


def filled(
    filters: BoardFilters, further: Mapping[str, Options]
) -> tuple[tuple[Field, tuple[Choice, ...]], ...]:
    """``further``: options that follow from the stored figures, by field."""
    return tuple(
        (
            field,
            choices(
                (*field.options, *further.get(field.name, ())),
                str(getattr(filters, field.name) or ""),
            ),
        )
        for field in FIELDS
    )


def words(filters: BoardFilters, sentence: bool = True) -> str:
    """``Apple M, on Metal, tuned``: the rows that are asked for, but for hardware by its name."""
    family = [FAMILIES[filters.family].label] if filters.family else []
    chosen = ((field.words, getattr(filters, field.name)) for field in FIELDS)
    setup = [say(value) for say, value in chosen if say and value not in (None, "any")]
    machine = [f"machine {filters.machine_id}"] if filters.machine_id else []
    owner = [f"machines of {filters.owner}"] if filters.owner else []
    trust = [f"trust level {filters.trust_level} or more"] if filters.trust_level else []
    found = ", ".join([*family, *setup, *machine, *owner, *trust])
    return found[:1].upper() + found[1:] if sentence else found
