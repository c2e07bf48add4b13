"""The baseline: the hardware that speed-ups and scores are relative to, the same on every page."""

from sqlalchemy import and_, case, func, or_, select
from sqlmodel import Session

from bench_protocol.catalogue.catalogue import CATALOGUE

from ..ranking.rows import TABLE
from ..ranking.score import PRECISION
from . import query_names

_C = TABLE.c
# Confirmed and established owners come first: new ones must not move every speed-up.
_OLDER = _C.confirmed_owners + _C.established_owners
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
    .order_by(
        _C.level,  # "hardware" is before "published"
        func.count(case((_OLDER > 0, _C.workload_digest)).distinct()).desc(),
        func.max(_OLDER).desc(),
        func.count(_C.workload_digest.distinct()).desc(),
        func.max(_C.owners).desc(),
        func.max(_C.ns_per_sample).desc(),
        _C.hardware_slug,
    )
    .limit(1)
)


def baseline_slug(session: Session, of_operator: str | None) -> str | None:
    """The hardware that the operator chose, if it has a figure; else the measured hardware on most
    boards, of those the one with most owners, of those the slowest: by confirmed and established
    owners first, then by all. Published hardware only where nothing was measured; None where
    nothing is ranked."""
    if of_operator is not None and query_names.is_hardware(session, of_operator):
        return of_operator
    slug: str | None = session.connection().scalar(_MOST_BOARDS)
    return slug
