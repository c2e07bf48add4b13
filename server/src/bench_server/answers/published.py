"""Published figures, each with its source."""

from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session, col, select

from ..db.tables import PublishedFigure
from .types.shared_fields import InSetup, InUnits, unit_fields


@dataclass(frozen=True)
class PublishedAnswer(InUnits, InSetup):
    """A figure copied from elsewhere: ``compare`` takes its id."""

    id: str
    source: str
    url: str
    license: str
    note: str
    source_table: str
    published_at: datetime
    hardware: str
    hardware_slug: str
    workload: str
    samples_per_second: float
    accuracy: float | None


def published_figures(session: Session) -> list[PublishedAnswer]:
    derived = ("samples_per_second", "license", "unit", "tokens_per_second")
    names = [name for name in PublishedAnswer.__dataclass_fields__ if name not in derived]
    rows = session.scalars(select(PublishedFigure).order_by(col(PublishedFigure.id)))
    return [
        PublishedAnswer(
            **{name: getattr(row, name) for name in names},
            **unit_fields(row.workload, 1e9 / row.ns_per_sample),
            license=row.licence,
            samples_per_second=1e9 / row.ns_per_sample,
        )
        for row in rows
    ]
