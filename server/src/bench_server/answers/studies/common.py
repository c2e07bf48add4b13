"""Shared by the studies: figures of one hardware."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict
from sqlalchemy import func, select
from sqlmodel import Session

from ...ranking.compare import Comparison
from ...ranking.figures import Figure
from ...ranking.rows import TABLE
from .. import known, queries
from ..filters import AHardware
from ..types import rate_fields


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
    samples_per_second_low: float | None
    samples_per_second_high: float | None
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


def of_hardware(session: Session, slug: str, field: str = "hardware") -> list[Figure]:
    """Every figure of a hardware.

    Args:
        field: the parameter that names it.

    Raises:
        InvalidQuery: it has none.
    """
    figures_found = queries.hardware_figures(session, slug)
    if not figures_found:
        raise known.unknown_hardware(session, slug, field)
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


def one_kind(figures: list[Figure]) -> list[Figure]:
    """The figures on real data if there are any, else all; of these those of long timings if there
    are any, else all. Kinds of data and of timing are never mixed."""

    def kind(figure: Figure) -> tuple[bool, bool]:
        return figure.setup.data != "real", figure.setup.timing != "long"

    best = min(map(kind, figures), default=None)
    return [figure for figure in figures if kind(figure) == best]


def setup_figure(figure: Figure, held: Comparison | None) -> SetupFigure:
    return SetupFigure(
        framework=figure.setup.framework,
        device=figure.setup.device,
        recipe=figure.setup.recipe,
        batch_size=figure.setup.batch_size,
        **rate_fields(figure),
        repeats=figure.repeats,
        published=figure.published,
        result_id=figure.evidence.result_id,
        held=held,
    )
