"""What the studies share: figures of one hardware, and one held against another."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict
from sqlalchemy import func, select
from sqlmodel import Session

from ...errors import NotFound
from ...ranking.compare import compare
from ...ranking.figures import Figure, Kind
from ...ranking.rows import TABLE
from .. import queries
from ..filters import AHardware


class HardwareChoice(BaseModel):
    """Parameters of a study of one hardware; empty: the one of which most is known."""

    model_config = ConfigDict(extra="ignore")

    hardware: AHardware = None


@dataclass(frozen=True)
class FigureComparison:
    """A figure beside another: how much faster, its 95 % interval, and the verdict in words."""

    speed_up: float
    low: float | None
    high: float | None
    kind: Kind
    verdict: str


@dataclass(frozen=True)
class SetupFigure:
    """One set-up's figure; ``held`` against what the study says, null where there is nothing."""

    framework: str
    device: str
    recipe: str
    batch_size: int
    samples_per_second: float
    repeats: int
    published: bool
    result_id: str
    held: FigureComparison | None


def devices(session: Session) -> list[tuple[str, str, str]]:
    """Slug, name and kind of device of hardware with measured figures, by name."""
    name = func.min(TABLE.c.hardware)
    query = (
        select(TABLE.c.hardware_slug, name, func.min(TABLE.c.device))
        .where(TABLE.c.level == "hardware")
        .group_by(TABLE.c.hardware_slug)
        .order_by(name)
        .limit(queries.MOST_HARDWARE)
    )
    return [(slug, words, device) for slug, words, device in session.connection().execute(query)]


def of_hardware(session: Session, slug: str) -> list[Figure]:
    found = queries.hardware_figures(session, slug)
    if not found:
        raise NotFound(
            f"no hardware {slug[:100]!r} with results that count",
            field="hardware",
            mend="GET /api/v1/hardware lists those there are",
        )
    return found


def richest(session: Session, *axes: Any) -> str | None:
    """The hardware of which most combinations of these axes were measured."""
    combinations = (
        select(TABLE.c.hardware_slug, *axes)
        .where(TABLE.c.level == "hardware", TABLE.c.precision == "float32")
        .distinct()
        .subquery()
    )
    slug = combinations.c.hardware_slug
    query = select(slug).group_by(slug).order_by(func.count().desc(), slug).limit(1)
    found: str | None = session.connection().scalar(query)
    return found


def data_of(figures: list[Figure]) -> str:
    return "real" if any(f.setup.data == "real" for f in figures) else "generated"


def one_data(figures: list[Figure]) -> list[Figure]:
    """Those on real data where there are any: the two never meet."""
    data = data_of(figures)
    return [f for f in figures if f.setup.data == data]


def setup_figure(one: Figure, base: Figure | None) -> SetupFigure:
    return SetupFigure(
        framework=one.setup.framework,
        device=one.setup.device,
        recipe=one.setup.recipe,
        batch_size=one.setup.batch_size,
        samples_per_second=1e9 / one.ns_per_sample,
        repeats=one.repeats,
        published=one.published,
        result_id=one.evidence.result_id,
        held=hold(one, base) if base else None,
    )


def hold(one: Figure, base: Figure) -> FigureComparison:
    found = compare(one, base)
    return FigureComparison(found.speed_up, found.low, found.high, found.kind, found.verdict)
