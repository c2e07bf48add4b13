"""``/wanted``: which hardware is most wanted, and why?"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import Session

from ...answers import asks
from .common import Page


@dataclass(frozen=True)
class WantedForAReason:
    """Asks of one hardware for one reason. ``cells``: those of one workload, device, batch size,
    precision, data and timing together."""

    why: str
    count: int
    cells: tuple[tuple[asks.AskAnswer, ...], ...]


@dataclass(frozen=True)
class WantedHardware:
    """A hardware and its asks by reason, the most wanted first."""

    slug: str
    name: str
    reasons: tuple[WantedForAReason, ...]


@dataclass(frozen=True)
class WantedPage(Page):
    """``/wanted``: hardware in the order of its most wanted set-up. ``heading`` states the finding.
    ``day`` and ``root``: of the draw, null before the first one."""

    heading: str
    day: str | None
    root: str | None
    rows: tuple[WantedHardware, ...]


def wanted_page(session: Session) -> WantedPage:
    answer = asks.asks(session)
    rows = by_hardware(answer.asks)
    return WantedPage(
        title="Most wanted hardware",
        heading=_finding(len(rows)),
        json_href="/api/v1/asks",
        day=answer.day,
        root=answer.root,
        rows=rows,
    )


def by_hardware(every: Sequence[asks.AskAnswer]) -> tuple[WantedHardware, ...]:
    """Asks by hardware and reason, in the order of the first of each."""
    wanted: dict[tuple[str, str], dict[str, list[asks.AskAnswer]]] = {}
    for ask in every:
        by_reason = wanted.setdefault((ask.hardware_slug, ask.hardware), {})
        by_reason.setdefault(ask.why, []).append(ask)
    return tuple(
        WantedHardware(
            *named,
            tuple(
                WantedForAReason(why, len(group), _cells(group)) for why, group in by_reason.items()
            ),
        )
        for named, by_reason in wanted.items()
    )


def _cells(group: Sequence[asks.AskAnswer]) -> tuple[tuple[asks.AskAnswer, ...], ...]:
    cells: dict[tuple[object, ...], list[asks.AskAnswer]] = {}
    for ask in sorted(group, key=lambda ask: (ask.workload, ask.framework, ask.recipe)):
        cell = (ask.workload, ask.device, ask.batch_size, ask.precision, ask.data, ask.timing)
        cells.setdefault(cell, []).append(ask)
    return tuple(map(tuple, cells.values()))


def _finding(hardware: int) -> str:
    if not hardware:
        return "No measurement is wanted"
    which = "one GPU or CPU needs" if hardware == 1 else f"{hardware} GPUs and CPUs need"
    return f"Help wanted: {which} a second measurement"
