"""Criteria for the rows of a query, and their SQL."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_, select

from bench_protocol.catalogue.workloads import Workload

from ..db.environments import NUMBERS, VERSIONS, version_key
from ..db.tables import EnvironmentRow, table_of
from ..ranking.figures import Figure
from ..ranking.rows import RESULTS
from . import families
from .parameters import CONDITION

ENVIRONMENTS = table_of(EnvironmentRow)
COMPARISONS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Search:
    """Hardware that is searched for, by a part of its name, its slug or its family. All must fit;
    None fits everything."""

    name: str | None = None
    slug: str | None = None
    family: str | None = None

    def __bool__(self) -> bool:
        return bool(self.name or self.slug or self.family)

    @property
    def is_of_one(self) -> bool:
        """Whether some hardware is named, not only its family: where is it on the board?"""
        return bool(self.name or self.slug)

    def names(self, hardware: str, slug: str) -> bool:
        """Whether hardware has this name and this slug, whatever its family."""
        named = not self.name or self.name.casefold() in hardware.casefold()
        return named and self.slug in (None, slug)

    def finds(self, figure: Figure) -> bool:
        """Whether a figure is of this hardware."""
        family = not self.family or families.contains(
            self.family, figure.hardware, figure.setup.device
        )
        return family and self.names(figure.hardware, figure.hardware_slug)

    def conditions(self, table: Any) -> list[ColumnElement[bool]]:
        """The same in SQL, for a table with columns ``hardware``, ``hardware_slug``, ``device``."""
        conditions = []
        if self.name:
            conditions.append(table.c.hardware.icontains(self.name, autoescape=True))
        if self.slug:
            conditions.append(table.c.hardware_slug == self.slug)
        if self.family:
            conditions.append(families.condition(table, self.family))
        return conditions


@dataclass(frozen=True)
class Criteria:
    """Criteria for rows. ``equal``: values of columns, by name; ``default_batch``: the default
    batch size of their workload; ``trust``: the lowest trust level; ``where``: attributes of their
    environment, each a :data:`.parameters.Condition`."""

    equal: Mapping[str, Any] = field(default_factory=dict)
    default_batch: bool = False
    search: Search = Search()
    trust: int | None = None
    where: Sequence[str] = ()

    def of_baseline(self, slug: str) -> "Criteria":
        """The criteria of a baseline's rows. Only batch size and precision select among them, so
        that the baseline is the same whatever rows are asked for."""
        kept = {
            name: self.equal[name] for name in ("batch_size", "precision") if name in self.equal
        }
        return Criteria(kept, self.default_batch, Search(slug=slug))

    def of_rows(self, table: Any) -> list[ColumnElement[bool]]:
        """Conditions on the columns that aggregates and results have."""
        equal = [table.c[name] == value for name, value in self.equal.items()]
        return [*equal, *self.search.conditions(table)]

    def on_boards(self, table: Any, workloads: Sequence[Workload]) -> list[ColumnElement[bool]]:
        """Conditions on the rows of these workloads' boards."""
        digest, batch_size = table.c.workload_digest, table.c.batch_size
        conditions = [*self.of_rows(table), digest.in_([one.digest for one in workloads])]
        if self.default_batch:
            conditions += [
                batch_size.in_({one.batch_size for one in workloads}),
                or_(
                    *(and_(digest == one.digest, batch_size == one.batch_size) for one in workloads)
                ),
            ]
        return conditions

    def of_evidence(self) -> list[ColumnElement[bool]]:
        """Conditions on the trust level and the environment of results."""
        conditions = []
        if self.trust is not None:
            conditions.append(RESULTS.c.trust_level >= self.trust)
        if self.where:
            conditions.append(RESULTS.c.environment_id.in_(self.environments()))
        return conditions

    def of_results(self) -> list[ColumnElement[bool]]:
        return [*self.of_rows(RESULTS), *self.of_evidence()]

    def environments(self) -> Select[tuple[str]]:
        """Ids of the environments that meet every condition of ``where``."""
        query = select(ENVIRONMENTS.c.id)
        for text in self.where:
            match = CONDITION.fullmatch(text)
            assert match is not None  # noqa: S101 - parameters.Condition has checked it
            name, sign, value = match.groups()
            column = ENVIRONMENTS.c[f"{name}_key" if name in VERSIONS else name]
            wanted: Any = value
            if name in VERSIONS:
                wanted = version_key(value)
            elif name in NUMBERS:
                wanted = int(value)
            query = query.where(COMPARISONS[sign](column, wanted))
        return query
