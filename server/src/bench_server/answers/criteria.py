"""Criteria for the rows of a query, and their SQL."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, literal, or_, select

from bench_protocol.base.names import slug as slug_of
from bench_protocol.catalogue.workloads import Workload

from ..db.tables import Owner, table_of
from ..ranking.figures import Figure
from ..ranking.rows import RESULTS, TABLE
from . import families

OWNERS = table_of(Owner)
MACHINES = TABLE.alias("of_machines")
# Shorter beginnings of an id are found in too many, and are parts of names too.
ID = re.compile("[0-9a-f]{4,16}")


@dataclass(frozen=True)
class Search:
    """``name``: words of a hardware's name (of the last one a beginning; "m4" does not find
    "SXM4"), a part of an owner's name, or the beginning of an id. All must fit; None fits
    everything."""

    name: str | None = None
    slug: str | None = None
    family: str | None = None

    def __bool__(self) -> bool:
        return bool(self.name or self.slug or self.family)

    @property
    def is_of_one(self) -> bool:
        """Whether some hardware is named, not only its family: where is it on the board?"""
        return bool(self.name or self.slug)

    def names(self, slug: str, owner: str = "", machine_id: str = "") -> bool:
        """Whether a row has this name and this slug, whatever its family."""
        wanted = (self.name or "").casefold()
        named = wanted in owner.casefold() or any(words in f"-{slug}" for words in self._words)
        named = named or (self.is_id and machine_id.startswith(wanted))
        return named and self.slug in (None, slug)

    def finds(self, figure: Figure) -> bool:
        family = not self.family or families.contains(
            self.family, figure.hardware, figure.setup.device
        )
        subject = figure.subject
        names = self.names(figure.hardware_slug, subject.owner, subject.machine_id)
        return family and names

    def conditions(self, table: Any) -> list[ColumnElement[bool]]:
        """For tables of aggregates, results (by their ids too) and withdrawn ones (no owner)."""
        conditions: list[ColumnElement[bool]] = []
        if self.name:
            c, wanted = table.c, self.name.casefold()
            slug = literal("-").concat(c.hardware_slug)
            named = [slug.contains(words, autoescape=True) for words in self._words]
            if "owner" in c:
                named.append(c.owner.icontains(wanted, autoescape=True))
            ids = (c[name] for name in ("machine_id", "submission_id") if name in c)
            named += [self._begins(column) for column in ids if self.is_id]
            conditions.append(or_(*named))
        if self.slug:
            conditions.append(table.c.hardware_slug == self.slug)
        if self.family:
            conditions.append(families.condition(table, self.family))
        return conditions

    def hardware_of_machines(self) -> Select[tuple[str]]:
        """The slugs of hardware of the machines and owners that are searched for, by indexes."""
        label = OWNERS.c.label
        labels = select(label).where(label.icontains(self.name or "", autoescape=True))
        c = MACHINES.c
        fits = [c.owner.in_(labels), *([self._begins(c.machine_id)] if self.is_id else [])]
        return select(c.hardware_slug).where(c.level == "machine", or_(*fits))

    @property
    def _words(self) -> tuple[str, ...]:
        """Texts to find in ``-SLUG``, from a word's start: the name as a slug, and as given."""
        name = self.name or ""
        slugs = [slug_of(name)] if any(map(str.isalnum, name)) else []
        return tuple(f"-{words}" for words in (*slugs, name.casefold()))

    @property
    def is_id(self) -> bool:
        return bool(ID.fullmatch((self.name or "").casefold()))

    def _begins(self, id: Any) -> ColumnElement[bool]:
        """SQL that uses an index."""
        wanted = (self.name or "").casefold()
        return id.between(wanted, f"{wanted}g")  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Criteria:
    """``equal``: values of columns; ``default_batch``: their workload's; ``trust_level``: least."""

    equal: Mapping[str, Any] = field(default_factory=dict)
    default_batch: bool = False
    search: Search = Search()
    trust_level: int | None = None

    def of_baseline(self, slug: str) -> "Criteria":
        """Batch size and precision alone: the baseline is the same whatever rows are asked for."""
        kept = {
            name: self.equal[name] for name in ("batch_size", "precision") if name in self.equal
        }
        return Criteria(kept, self.default_batch, Search(slug=slug))

    def of_rows(self, table: Any) -> list[ColumnElement[bool]]:
        equal = [table.c[name] == value for name, value in self.equal.items()]
        return [*equal, *self.search.conditions(table)]

    def on_boards(self, workloads: Sequence[Workload]) -> list[ColumnElement[bool]]:
        digest, batch_size = TABLE.c.workload_digest, TABLE.c.batch_size
        conditions = [*self.of_rows(TABLE), digest.in_([one.digest for one in workloads])]
        if self.default_batch:
            conditions += [
                batch_size.in_({one.batch_size for one in workloads}),
                or_(
                    *(and_(digest == one.digest, batch_size == one.batch_size) for one in workloads)
                ),
            ]
        return conditions

    def of_trust_level(self) -> list[ColumnElement[bool]]:
        return [] if self.trust_level is None else [RESULTS.c.trust_level >= self.trust_level]

    def of_results(self) -> list[ColumnElement[bool]]:
        return [*self.of_rows(RESULTS), *self.of_trust_level()]
