"""Shared by page contexts: form options, addresses, figures by workload."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from ...answers.cell_figures import CellFigure

VENDORS = ("apple", "nvidia", "amd", "intel")


@dataclass(frozen=True)
class Choice:
    """An option of a form field or a link: value, text, and whether it is selected."""

    value: str
    label: str
    chosen: bool


@dataclass(frozen=True)
class Page:
    """What every page has: a title, and the address of its answer as JSON."""

    title: str
    json_href: str


@dataclass(frozen=True)
class WorkloadFigures:
    """Fastest first; ``top``: the rate at which the longest range ends."""

    workload: str
    figures: tuple[CellFigure, ...]
    top: float


def address(path: str, parameters: dict[str, Any]) -> str:
    """A path with query parameters; a list repeats the parameter."""
    return f"{path}?{urlencode(parameters, doseq=True)}" if parameters else path


def vendor(hardware: str) -> str:
    """The class of a vendor's colour."""
    first = hardware.split(maxsplit=1)[0].casefold()
    return first if first in VENDORS else "other"


def choices(pairs: Iterable[tuple[str, str]], chosen: str | None) -> tuple[Choice, ...]:
    """Options from values and their labels."""
    return tuple(Choice(value, label, value == chosen) for value, label in pairs)


def by_workload(figures: Sequence[CellFigure]) -> tuple[WorkloadFigures, ...]:
    """Group figures by workload; they arrive in the catalogue's order, fastest first."""
    grouped: dict[str, list[CellFigure]] = {}
    for figure in figures:
        grouped.setdefault(figure.workload, []).append(figure)
    return tuple(
        WorkloadFigures(name, tuple(cell_figures), max(figure.bar_end for figure in cell_figures))
        for name, cell_figures in grouped.items()
    )
