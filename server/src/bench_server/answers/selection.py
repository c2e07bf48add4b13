"""``fields=``: the fields of a list's rows that a query asks for."""

from dataclasses import fields
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from .board_filters import BoardFilters
from .filters import Parameters, ResultFilters, ResultPageFilters
from .parameters import Empty
from .types.leaderboard import BoardRow
from .types.results import ResultAnswer


class Selection(Parameters):
    """Parameters of a list with rows of one type, ``row_type``."""

    row_type: ClassVar[type]
    fields: Annotated[str | None, Empty] = Field(
        None,
        max_length=1000,
        description="names of the fields that each row has, with commas between them; empty: all",
        examples=["hardware,samples_per_second"],
    )

    @field_validator("fields")
    @classmethod
    def _are_there(cls, text: str | None) -> str | None:
        there = names_of(cls.row_type)
        for name in chosen(text) or ():
            if name not in there:
                raise ValueError(f"no field {name[:64]!r}; there are {', '.join(there)}")
        return text


class BoardQuery(BoardFilters, Selection):
    row_type = BoardRow


class ResultQuery(ResultPageFilters, Selection):
    row_type = ResultAnswer


class ResultExportQuery(ResultFilters, Selection):
    row_type = ResultAnswer


def names_of(row_type: Any) -> list[str]:
    return [field.name for field in fields(row_type)]


def chosen(text: str | None) -> tuple[str, ...] | None:
    """The names in ``fields=``, each once; None for all."""
    return None if text is None else tuple(dict.fromkeys(text.split(",")))
