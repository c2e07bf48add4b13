"""Filters: the parameters of each query, and what they mean for its rows."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from . import cursors
from .criteria import Criteria, Search
from .parameters import (
    ABatchSize,
    AData,
    ADevice,
    AFramework,
    AHardware,
    AnOwner,
    APrecision,
    ARecipe,
    ATiming,
    AWorkload,
    Chosen,
    Cursor,
    FamilyName,
    KeyId,
    Limit,
    MachineId,
    Moment,
    PartOfName,
)


class Parameters(BaseModel):
    """Parameters of an address; another one is refused. The text below each is its description."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class SetupFilters(Parameters):
    """Filters by workload and set-up. Each is named like the column that must be equal."""

    workload: AWorkload = None
    framework: AFramework = None
    device: ADevice = None
    recipe: ARecipe = None
    data: AData = None
    timing: ATiming = None


# Columns that must be equal to the filter of their name, where a query has such a filter.
COLUMNS = {
    *SetupFilters.model_fields,
    *("machine_id", "owner", "batch_size", "precision", "status", "key_id"),
}


class CellFilters(SetupFilters):
    """Filters of both the board and the list of results."""

    hardware: AHardware = None
    q: PartOfName = None
    family: Chosen[FamilyName] = Field(None, examples=["apple-m"])
    """a family of hardware"""
    machine_id: Chosen[MachineId] = Field(None, examples=["0f1e2d3c4b5a6978"])
    """a machine's id"""
    owner: AnOwner = None
    trust_level: Annotated[int, Field(ge=0, le=4)] | None = Field(None, examples=[3])
    """lowest trust level of a row"""

    @property
    def criteria(self) -> Criteria:
        return Criteria(
            self.model_dump(include=COLUMNS, exclude_none=True),
            search=Search(self.q, self.hardware, self.family),
            trust_level=self.trust_level,
        )


class HistoryFilters(SetupFilters):
    """Filters that select one of a machine's cells."""

    batch_size: ABatchSize = None
    precision: APrecision = None


class ListFilters(Parameters):
    """Parameters of the lists of hardware and machines."""

    q: PartOfName = None
    limit: Limit = 50
    cursor: Chosen[Cursor] = Field(None, examples=[cursors.write("apple-m2-max-30-core-gpu")])
    """next_cursor of the page before"""


class MachineListFilters(ListFilters):
    """Parameters of the list of machines."""

    owner: AnOwner = None


class ResultFilters(CellFilters):
    """Filters of a list or an export of results."""

    batch_size: ABatchSize = None
    precision: APrecision = None
    status: Chosen[Literal["measured", "failed"]] = Field(None, examples=["failed"])
    """what a repeat came to"""
    ranked: Chosen[bool] = Field(None, examples=[True])
    """whether it is ranked"""
    key_id: KeyId | None = Field(None, examples=["0f1e2d3c4b5a6978" * 4])
    """the key that signed"""
    run_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")] | None = Field(
        None, examples=["0f1e2d3c4b5a6978" * 2]
    )
    """the run it was measured in"""
    received_after: Chosen[Moment] = Field(None, examples=["2026-11-01T00:00:00Z"])
    """received after this moment; a day is its first moment, in UTC"""


class ResultPageFilters(ResultFilters):
    sort: Chosen[Literal["received_at", "-received_at"]] = Field(None, examples=["received_at"])
    """the oldest first, or (the default) the newest"""
    verdicts: bool = Field(True, examples=[False])
    """false: leave the findings of the checks out, nine tenths of an answer"""
    limit: Limit = 50
    cursor: Chosen[Cursor] = Field(
        None, examples=[cursors.write("2026-11-21T04:00:00+00:00", "0f1e2d3c4b5a6978")]
    )
    """next_cursor of the page before"""


class ListPageFilters(ListFilters):
    """The same on a page, where a link from another site may have added parameters."""

    model_config = ConfigDict(extra="ignore")


class MachineListPageFilters(MachineListFilters):
    """The same on a page, where a link from another site may have added parameters."""

    model_config = ConfigDict(extra="ignore")


class ResultListFilters(ResultPageFilters):
    """The same on a page, where a link from another site may have added parameters."""

    model_config = ConfigDict(extra="ignore")
