"""Filters of the leaderboard, and all that they mean: its rows, their ranks, and their order."""

from dataclasses import replace
from typing import Literal

from pydantic import ConfigDict, Field

from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.matrix import Precision
from bench_protocol.catalogue.workloads import Size, Workload

from ..errors import InvalidQuery
from ..ranking.owners import Backing
from . import cursors
from .criteria import Criteria, Search
from .filters import CellFilters
from .parameters import (
    PARTS,
    BatchSize,
    Chosen,
    Cursor,
    Group,
    HardwareSlug,
    Name,
    Part,
    Parts,
    RankBy,
    Sort,
)


class BoardFilters(CellFilters):
    """Parameters of the leaderboard."""

    size: Chosen[Size] = Field(None, examples=["small"])
    """boards of models of this size: medium from 250,000 parameters on, large from 10 million on"""
    batch_size: Chosen[BatchSize | Literal["any"]] = Field(None, examples=[256, "any"])
    """empty: each workload's default"""
    precision: Chosen[Precision | Literal["any"]] = Field(None, examples=["any"])
    """empty: float32"""
    group: Chosen[Group] = Field(None, examples=["setup"])
    """a row for each hardware (its fastest set-up; the default) or machine, or for every set-up
    of each hardware; machines have no ranks"""
    rank_by: Chosen[RankBy] = Field(None, examples=["energy"])
    """what ranks rows. time and throughput: fastest first (the default); energy: least joules
    per sample, within one energy_scope; mfu: highest. Rows without the figure are left
    out"""
    sort: Chosen[Sort] = Field(None, examples=["-spread"])
    """the field that rows are sorted by, smallest first, with a - before it greatest first, rows
    without it last; ranks stay. backing: the weakest first. Empty: by rank"""
    backing: Chosen[Backing] = Field(None, examples=["confirmed"])
    """what backs a figure at least, and ranks are among those: several owners, or two confirmed
    ones"""
    energy_scope: Chosen[Name] = Field(None, examples=["gpu"])
    """what the energy is of: gpu, cpu_package, soc, which do not compare; empty with
    rank_by=energy: the one that most of the board has (name it to follow a cursor)"""
    baseline: Chosen[HardwareSlug] = Field(None, examples=["published-intel-core-i7-8700"])
    """hardware that speed-ups are against; empty: the operator's choice, else the measured
    hardware on most boards, which needs two owners or an established one"""
    limit: int = Field(200, ge=1, le=500, examples=[50])
    """most rows of a workload"""
    cursor: Chosen[Cursor] = Field(None, examples=[cursors.write(0, 1234.5, 1234.5, "0" * 32)])
    """next_cursor of the page before; needs workload"""

    @property
    def criteria(self) -> Criteria:
        """A board has one batch size and one precision, unless any is asked for."""
        chosen = super().criteria
        equal = {"precision": "float32", **chosen.equal}
        equal = {name: value for name, value in equal.items() if value != "any"}
        return replace(chosen, equal=equal, default_batch=self.batch_size is None)

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """Raises InvalidQuery for a cursor without a workload, or a size that it has not."""
        if self.cursor and not self.workload:
            raise InvalidQuery("a cursor belongs to one workload's board", field="workload")
        if self.workload is None:
            return tuple(one for one in CATALOGUE if self.size in (None, one.size))
        workload = workload_named(self.workload)
        if self.size not in (None, workload.size):
            raise InvalidQuery(f"{workload.name} is {workload.size}", field="size")
        return (workload,)

    @property
    def ranked_by(self) -> RankBy:
        return self.rank_by or "throughput"

    @property
    def is_of_hardware(self) -> bool:
        """Whether rows are hardware or its set-ups, not machines."""
        return self.group != "machine"

    @property
    def is_of_scores(self) -> bool:
        """Whether hardware is asked for over several workloads, by speed."""
        by_speed = self.rank_by in (None, "throughput", "time") and self.sort is None
        return self.workload is None and self.group in (None, "hardware") and by_speed

    @property
    def _searches_first(self) -> bool:
        """Whether a search selects rows before they are ranked: ranking all would read too much."""
        return not self.is_of_hardware or bool(self.machine_id or self.owner)

    @property
    def ranked_criteria(self) -> Criteria:
        """A search selects among the ranked rows, unless it comes first."""
        criteria = self.criteria
        return criteria if self._searches_first else replace(criteria, search=Search())

    @property
    def ranks_rows(self) -> bool:
        """Whether rows have ranks: those of hardware, unless a search selected them before."""
        return not self._searches_first


class BoardQuery(BoardFilters):
    """The same in the API, whose answer has some parts only if they are asked for."""

    include: Chosen[Parts] = Field(None, examples=["scores,unranked"])
    """parts that the answer also has, with commas between them: others (further set-ups of each
    row), scores, unranked"""

    @property
    def parts(self) -> set[Part]:
        return {part for part in PARTS if part in (self.include or "").split(",")}


class BoardPageFilters(BoardFilters):
    """The same on a page, where a link from another site may have added parameters."""

    model_config = ConfigDict(extra="ignore")
