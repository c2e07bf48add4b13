"""Shared by the studies: figures of one hardware."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict
from sqlalchemy import func, select
from sqlmodel import Session

from bench_protocol.catalogue.workloads import Workload

from ...ranking.best import best_first
from ...ranking.compare import Comparison
from ...ranking.figures import Figure
from ...ranking.rows import TABLE
from .. import query_names, stored_figures
from ..parameters import AHardware
from ..types.shared_fields import InSetup, Rated, rate_fields


class HardwareChoice(BaseModel):
    """Parameters of a study of one hardware; empty: the hardware with most figures."""

    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True)

    hardware: AHardware = None


@dataclass(frozen=True)
class StudyAnswer:
    """Of one hardware, null if nothing is ranked. ``comparisons``: for how many the verdicts are
    corrected."""

    hardware: str | None
    hardware_slug: str | None
    comparisons: int


@dataclass(frozen=True)
class SetupFigure(Rated, InSetup):
    """One set-up's figure; ``compared``: with the study's reference, if there is one."""

    repeats: int
    published: bool
    result_id: str
    compared: Comparison | None


def devices(session: Session) -> list[tuple[str, str, str]]:
    """Slug, name and kind of device of hardware with measured figures, by name."""
    name = func.min(TABLE.c.hardware)
    query = (
        select(TABLE.c.hardware_slug, name, func.min(TABLE.c.device))
        .where(TABLE.c.level == "hardware")
        .group_by(TABLE.c.hardware_slug)
        .order_by(name)
        .limit(query_names.MOST_HARDWARE)
    )
    return [(slug, words, device) for slug, words, device in session.connection().execute(query)]


def of_hardware(session: Session, slug: str, field: str = "hardware") -> list[Figure]:
    """``field``: the parameter that names it. Raises InvalidQuery if it has no figure."""
    figures_found = stored_figures.hardware_figures(session, slug)
    if not figures_found:
        raise query_names.unknown_hardware(session, slug, field)
    return figures_found


def of_choice(session: Session, choice: HardwareChoice, *axes: Any) -> list[Figure]:
    """Every figure of the chosen hardware, else of that with most combinations of these axes.
    Raises InvalidQuery if the chosen hardware has none."""
    slug = choice.hardware or _richest(session, *axes)
    return of_hardware(session, slug) if slug else []


def of_cells(
    figures: Sequence[Figure], workload: Workload, batch_size: int | None = None
) -> list[Figure]:
    """The figures in float32, from the best on, of all batch sizes or of one."""
    return best_first(
        figure
        for figure in figures
        if figure.subject.workload_digest == workload.digest
        and figure.setup.precision == "float32"
        and batch_size in (None, figure.setup.batch_size)
    )


def _richest(session: Session, *axes: Any) -> str | None:
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


def setup_figure(figure: Figure, compared: Comparison | None) -> SetupFigure:
    return SetupFigure(
        **figure.setup._asdict(),
        **rate_fields(figure),
        repeats=figure.repeats,
        published=figure.published,
        result_id=figure.evidence.result_id,
        compared=compared,
    )
