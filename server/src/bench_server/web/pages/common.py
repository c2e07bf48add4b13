"""What the contexts of pages share."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from sqlmodel import Session

from ...answers import queries


@dataclass(frozen=True)
class Choice:
    """An option of a form's field or a link: its value, its words, and whether it is in force."""

    value: str
    label: str
    chosen: bool


def address(path: str, parameters: dict[str, Any]) -> str:
    """A path with its parameters; a list gives the parameter several times."""
    return f"{path}?{urlencode(parameters, doseq=True)}" if parameters else path


def hardware_choices(session: Session, chosen: str | None) -> tuple[Choice, ...]:
    """Every hardware with figures as an option, by name."""
    return tuple(
        Choice(slug, name, slug == chosen) for slug, name in queries.ranked_hardware(session)
    )
