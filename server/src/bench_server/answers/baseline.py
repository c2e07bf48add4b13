"""The baseline: the hardware that speed-ups and scores are relative to, the same on every page."""

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import and_, case, func, or_, select
from sqlmodel import Session

from bench_protocol.catalogue.catalogue import CATALOGUE

from ..ranking.figures import Figure
from ..ranking.rows import TABLE
from ..ranking.score import PRECISION
from . import query_names


class Baseline(NamedTuple):
    """None where none has enough owners. ``chosen``: by operator or reader; all figures count."""

    slug: str | None
    chosen: bool = False

    def counted(self, figures: Iterable[Figure]) -> list[Figure]:
        """Figures of two owners, or of an established or confirmed one: a new owner alone decides
        no other figure."""
        return [
            figure
            for figure in figures
            if self.chosen or figure.published or figure.unit == "owners" or figure.owners.older
        ]


_C = TABLE.c
# Confirmed and established owners come first: new ones must not move every speed-up.
_OLDER = _C.confirmed_owners + _C.established_owners
_COUNTED = case((or_(_OLDER > 0, _C.value_unit == "owners"), _C.workload_digest))
_MOST_BOARDS = (
    select(_C.hardware_slug)
    .where(
        _C.level.in_(["hardware", "published"]),
        _C.precision == PRECISION,
        or_(
            *(
                and_(_C.workload_digest == workload.digest, _C.batch_size == workload.batch_size)
                for workload in CATALOGUE
            )
        ),
    )
    .group_by(_C.level, _C.hardware_slug)
    .having(or_(_C.level == "published", func.count(_COUNTED) > 0))
    .order_by(
        _C.level,  # "hardware" is before "published"
        func.count(case((_OLDER > 0, _C.workload_digest)).distinct()).desc(),
        func.max(_OLDER).desc(),
        func.count(_COUNTED.distinct()).desc(),
        func.max(_C.owners).desc(),
        func.max(_C.ns_per_sample).desc(),
        _C.hardware_slug,
    )
    .limit(1)
)


def baseline(session: Session, of_operator: str | None, of_reader: str | None = None) -> Baseline:
    """The hardware that reader or operator chose, if it has a figure; else the measured one on most
    boards, with most owners, the slowest: by confirmed and established owners first, then by all.
    Published hardware only where none has a figure of two owners, or of an older one."""
    if of_reader is not None:
        return Baseline(of_reader, chosen=True)
    if of_operator is not None and query_names.is_hardware(session, of_operator):
        return Baseline(of_operator, chosen=True)
    return Baseline(session.connection().scalar(_MOST_BOARDS))
