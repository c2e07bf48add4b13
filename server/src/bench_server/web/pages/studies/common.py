"""Shared by the pages of the studies: their contexts, and how sure a heading is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlmodel import Session

from ....answers.studies import HardwareChoice, PairChoice
from ....ranking.compare import Comparison
from ...plots import Plot
from ..common import Choice, address, hardware_choices

# Ends a heading that rests on a comparison without a verdict.
TOO_FEW = "; too few runs to be sure"
NOT_CLEAR = ", without a clear difference"


class Field(NamedTuple):
    """A field of the form. ``empty``: the label of no choice, where there may be none."""

    label: str
    name: str
    options: tuple[Choice, ...]
    empty: str = ""


@dataclass(frozen=True)
class StudyPage:
    """``/frameworks`` and every other study. ``heading`` states the finding; ``form``: its fields,
    none before anything was measured."""

    title: str
    heading: str
    json_href: str
    answer: Any
    form: tuple[Field, ...]

    @property
    def hardware_in_view(self) -> str | None:
        """The hardware that links to the other studies keep."""
        slug: str | None = self.answer.hardware_slug
        return slug


@dataclass(frozen=True)
class PlottedStudyPage(StudyPage):
    """``/batch-size``, ``/cpu-vs-gpu``, ``/trends``: a study with plots."""

    plots: tuple[Plot, ...]


def hardware_field(session: Session, slug: str | None) -> Field:
    """The field that chooses the hardware."""
    return Field("Hardware", "hardware", hardware_choices(session, slug))


def form(*fields: Field) -> tuple[Field, ...]:
    """A form, unless one of its fields has no options."""
    return fields if all(field.options for field in fields) else ()


def sureness(deciding: Sequence[Comparison]) -> tuple[str, str]:
    """The verb of a heading, and its end."""
    sure = sum(one.verdict_kind in ("faster", "slower") for one in deciding)
    if sure == len(deciding):
        return "is", ""
    if any(one.verdict_kind == "too_few_runs" for one in deciding):
        return ("is", "; some comparisons have too few runs") if sure else ("looks", TOO_FEW)
    return ("is", "; some differences are not clear") if sure else ("looks", NOT_CLEAR)


def twin(name: str, choice: HardwareChoice | PairChoice) -> str:
    """The address of the same answer as JSON."""
    return address(f"/api/v1/{name}", choice.model_dump(exclude_none=True, exclude_defaults=True))
