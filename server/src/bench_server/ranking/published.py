"""Published figures: copied from elsewhere, unsigned, trust level 0.

They come from :mod:`bench_protocol.catalogue.published`, which names their source. Boards show them
under separate names, and they can be a baseline. No median of measured figures includes them.
"""

import math
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, insert, select
from sqlmodel import Session

from bench_protocol.base import strict_json
from bench_protocol.base.names import slug
from bench_protocol.catalogue import published
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.statistics.comparison import LogSample

from ..db.tables import Aggregate, PublishedFigure
from .figures import Evidence, Figure, Setup, Subject
from .medians import Children, combine
from .rows import aggregate_columns

COPIED = ("framework", "device", "recipe", "batch_size", "accuracy")


def import_published(session: Session) -> tuple[int, int]:
    """Import the data file's figures; stored ones do not change. Returns the numbers of new figures
    and of all in the file."""
    document = published.document()
    rows = [_row(document["source"], copied) for copied in document["figures"]]
    stored_ids = set(session.scalars(select(PublishedFigure.id)))  # type: ignore[call-overload]
    new = [row for row in rows if row.id not in stored_ids]
    session.add_all(new)
    session.flush()
    _refresh(session)
    return len(new), len(rows)


def remake(session: Session) -> None:
    """Import the figures again from the data file, if they were imported before."""
    if session.scalars(select(PublishedFigure.id).limit(1)).first() is not None:  # type: ignore[call-overload]
        session.execute(delete(PublishedFigure))
        import_published(session)


def _refresh(session: Session) -> None:
    """Recompute the aggregates of the published figures; several of one cell give their median."""
    session.execute(delete(Aggregate).where(Aggregate.level == "published"))  # type: ignore[arg-type]
    groups: defaultdict[Subject, list[Figure]] = defaultdict(list)
    for row in session.scalars(select(PublishedFigure)):
        copied = figure(row)
        groups[copied.subject].append(copied)
    for subject, group in groups.items():
        median_figure = combine(Children.of(group), "run", subject)
        values = aggregate_columns("published", median_figure)
        session.execute(insert(Aggregate).values(values))


def figure(row: PublishedFigure) -> Figure:
    return Figure(
        id=row.id,
        subject=Subject(
            row.hardware, row.hardware_slug, row.workload, row.workload_digest, Setup.of(row)
        ),
        ns_per_sample=row.ns_per_sample,
        fastest_ns=row.ns_per_sample,
        slowest_ns=row.ns_per_sample,
        values=LogSample(1, math.log(row.ns_per_sample), 0.0),
        trust_level=0,
        newest_at=row.published_at,
        evidence=Evidence(row.id, row.accuracy),
        published=True,
    )


def _row(source: dict[str, str], copied: dict[str, Any]) -> PublishedFigure:
    """The timing is long: the source timed whole runs."""
    workload = workload_named(copied["workload"])
    named = {"source": source["name"]} | {name: str(value) for name, value in copied.items()}
    identity = strict_json.digest(named)
    return PublishedFigure(
        id=identity[:16],
        source=source["name"],
        url=source["url"],
        licence=source["licence"],
        note=source["note"],
        source_table=copied["table"],
        published_at=datetime.fromisoformat(source["date"]).replace(tzinfo=UTC),
        hardware=f"{copied['hardware']} (published)",
        hardware_slug=f"published-{slug(copied['hardware'])}",
        workload=workload.name,
        workload_digest=workload.digest,
        **{name: copied[name] for name in COPIED},
        precision="float32",
        data="real",
        timing="long",
        ns_per_sample=published.ns_per_sample(copied),
    )
