"""Shared by the studies: figures of one hardware."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict
from sqlalchemy import func, select
from sqlmodel import Session

from ...errors import NotFound
from ...ranking.compare import Comparison
from ...ranking.figures import Figure
from ...ranking.rows import TABLE
from .. import queries
from ..filters import AHardware


class HardwareChoice(BaseModel):
    """Parameters of a study of one hardware; empty: the hardware with most figures."""

    model_config = ConfigDict(extra="ignore")

    hardware: AHardware = None


@dataclass(frozen=True)
class SetupFigure:
    """One set-up's figure; ``held``: its comparison with the study's reference, if there is one."""

    framework: str
    device: str
    recipe: str
    batch_size: int
    samples_per_second: float
    repeats: int
    published: bool
    result_id: str
    held: Comparison | None


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
    figures_found = queries.hardware_figures(session, slug)
    if not figures_found:
        raise NotFound(
            f"no hardware {slug[:100]!r} with results that count",
            field="hardware",
            hint="GET /api/v1/hardware lists them all",
        )
    return figures_found


def richest(session: Session, *axes: Any) -> str | None:
    """The hardware with most measured combinations of these axes."""
    combinations = (
        select(TABLE.c.hardware_slug, *axes)
        .where(TABLE.c.level == "hardware", TABLE.c.precision == "float32")
        .distinct()
        .subquery()
    )
    slug = combinations.c.hardware_slug
    query = select(slug).group_by(slug).order_by(func.count().desc(), slug).limit(1)
    default_slug: str | None = session.connection().scalar(query)
    return default_slug


def data_of(figures: list[Figure]) -> str:
    return "real" if any(f.setup.data == "real" for f in figures) else "generated"


def one_data(figures: list[Figure]) -> list[Figure]:
    """The figures on real data if there are any, else all: the two are never mixed."""
    data = data_of(figures)
    return [f for f in figures if f.setup.data == data]


def setup_figure(figure: Figure, held: Comparison | None) -> SetupFigure:
    return SetupFigure(
        framework=figure.setup.framework,
        device=figure.setup.device,
        recipe=figure.setup.recipe,
        batch_size=figure.setup.batch_size,
        samples_per_second=1e9 / figure.ns_per_sample,
        repeats=figure.repeats,
        published=figure.published,
        result_id=figure.evidence.result_id,
        held=held,
    )
