"""Filters: the parameters of each query, and what they mean for its rows."""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from bench_protocol.catalogue.matrix import Precision

from . import cursors
from .criteria import Criteria, Search
from .parameters import (
    ATTRIBUTES,
    MOST_CONDITIONS,
    ABatchSize,
    AData,
    ADevice,
    AFramework,
    AHardware,
    APrecision,
    ARecipe,
    ATiming,
    AWorkload,
    BatchSize,
    Chosen,
    Condition,
    Cursor,
    FamilyName,
    Group,
    HardwareSlug,
    KeyId,
    Limit,
    MachineId,
    Name,
    PartOfName,
    RankBy,
    Sort,
)


class Parameters(BaseModel):
    """Parameters of an address; another one is refused."""

    model_config = ConfigDict(extra="forbid")


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
    *("machine_id", "batch_size", "precision", "status", "key_id"),
}


class CellFilters(SetupFilters):
    """Filters of both the board and the list of results."""

    hardware: AHardware = None
    q: PartOfName = None
    family: Chosen[FamilyName] = Field(
        None, description="a family of hardware", examples=["apple-m"]
    )
    machine_id: Chosen[MachineId] = Field(
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

    @property
    def criteria(self) -> Criteria:
        return Criteria(
            self.model_dump(include=COLUMNS, exclude_none=True),
            search=Search(self.q, self.hardware, self.family),
            trust=self.trust,
            where=self.where,
        )


class BoardFilters(CellFilters):
    """Parameters of the leaderboard."""

    batch_size: Chosen[BatchSize | Literal["any"]] = Field(
        None, description="empty: each workload's default", examples=[256, "any"]
    )
    precision: Chosen[Precision | Literal["any"]] = Field(
        None, description="empty: float32", examples=["any"]
    )
    group: Chosen[Group] = Field(
        None,
        description="a place for each hardware (its best set-up in its best tier; the default), "
        "machine, or result, or for every set-up of each hardware",
        examples=["setup"],
    )
    rank_by: Chosen[RankBy] = Field(
        None,
        description="what ranks rows within a tier. time and throughput: fastest first (the "
        "default); energy: least joules per sample, within one energy_scope; mfu, accuracy: "
        "highest. Rows without the figure are left out",
        examples=["energy"],
    )
    sort: Chosen[Sort] = Field(
        None,
        description="the field that rows are sorted by within a tier, smallest first, with a - "
        "before it greatest first; ranks stay. Empty: by rank. With group=result: newest_at alone",
        examples=["-spread"],
    )
    energy_scope: Chosen[Name] = Field(
        None,
        description="what the energy is of: gpu, cpu_package, soc, which do not compare; empty "
        "with rank_by=energy: the one that most of the board has (name it to follow a cursor)",
        examples=["gpu"],
    )
    baseline: Chosen[HardwareSlug] = Field(
        None,
        description="hardware that speed-ups are against; empty: the published i7-8700 where the "
        "board has it, else the slowest on the board",
        examples=["published-intel-core-i7-8700"],
    )
    limit: int = Field(200, ge=1, le=500, description="most rows of a workload", examples=[50])
    cursor: Chosen[Cursor] = Field(
        None,
        description="next_cursor of the page before; needs workload",
        examples=[cursors.write(0, 0, 1234.5, 1234.5, "0" * 32)],
    )

    @property
    def criteria(self) -> Criteria:
        """What these filters mean for rows: a board has one batch size and one precision, unless
        any is asked for."""
        chosen = super().criteria
        equal = {"precision": "float32", **chosen.equal}
        equal = {name: value for name, value in equal.items() if value != "any"}
        return replace(chosen, equal=equal, default_batch=self.batch_size is None)

    @property
    def searches_first(self) -> bool:
        """Whether a search selects rows before they are ranked: machines, results, or the hardware
        of one machine. To rank all of them would read all that the board has."""
        return self.group in ("machine", "result") or self.machine_id is not None

    @property
    def ranks_rows(self) -> bool:
        """Whether rows have ranks: not those that a search selected before, and not results in
        another order than that of the ranks."""
        search = self.criteria.search or self.machine_id
        sorted_results = self.group == "result" and self.sort is not None
        return not (self.searches_first and search) and not sorted_results


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
    cursor: Chosen[Cursor] = Field(
        None,
        description="next_cursor of the page before",
        examples=[cursors.write("apple-m2-max-30-core-gpu")],
    )


class ResultFilters(CellFilters):
    """Filters of a list or an export of results."""

    batch_size: ABatchSize = None
    precision: APrecision = None
    status: Chosen[Literal["measured", "failed"]] = Field(
        None, description="what a repeat came to", examples=["failed"]
    )
    ranked: Chosen[bool] = Field(None, description="whether it is ranked", examples=[True])
    key_id: KeyId | None = Field(
        None, description="the key that signed", examples=["0f1e2d3c4b5a6978" * 4]
    )
    run_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")] | None = Field(
        None, description="the run it was measured in", examples=["0f1e2d3c4b5a6978" * 2]
    )


class ResultPageFilters(ResultFilters):
    verdicts: bool = Field(
        True,
        description="false: leave the findings of the checks out, nine tenths of an answer",
        examples=[False],
    )
    limit: Limit = 50
    cursor: Chosen[Cursor] = Field(
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
