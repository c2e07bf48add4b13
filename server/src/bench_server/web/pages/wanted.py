"""``/wanted``: which hardware is most wanted, and why?"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlmodel import Session

from ...answers import asks

Key = TypeVar("Key")


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
class WantedPage:
    """``/wanted``: hardware in the order of its most wanted set-up. ``heading`` states the finding.
    ``day`` and ``root``: of the draw, null before the first one."""

    title: str
    heading: str
    json_href: str
    day: str | None
    root: str | None
    rows: tuple[WantedHardware, ...]


def wanted_page(session: Session) -> WantedPage:
    """Fill the context."""
    answer = asks.asks(session)
    rows = by_hardware(answer.asks)
    return WantedPage(
        title="Most wanted hardware",
        heading=_finding(len(answer.asks), len(rows)),
        json_href="/api/v1/asks",
        day=answer.day,
        root=answer.root,
        rows=rows,
    )


def by_hardware(every: Sequence[asks.AskAnswer]) -> tuple[WantedHardware, ...]:
    """Asks by hardware and reason, in the order of the first of each; within a reason by workload
    and set-up."""
    return tuple(
        WantedHardware(
            *named,
            tuple(
                WantedForAReason(why, len(group), _cells(group))
                for why, group in _grouped(found, lambda ask: ask.why).items()
            ),
        )
        for named, found in _grouped(every, lambda ask: (ask.hardware_slug, ask.hardware)).items()
    )


def _finding(count: int, hardware: int) -> str:
    if count <= 1:
        return f"{'One set-up' if count else 'Nothing'} is wanted again"
    where = f"{hardware} GPUs and CPUs" if hardware > 1 else "one GPU or CPU"
    return f"The {count} most wanted set-ups are on {where}"


def _grouped(
    every: Sequence[asks.AskAnswer], key: Callable[[asks.AskAnswer], Key]
) -> dict[Key, tuple[asks.AskAnswer, ...]]:
    groups: defaultdict[Key, list[asks.AskAnswer]] = defaultdict(list)
    for ask in every:
        groups[key(ask)].append(ask)
    return {one: tuple(group) for one, group in groups.items()}


def _cells(group: Sequence[asks.AskAnswer]) -> tuple[tuple[asks.AskAnswer, ...], ...]:
    by_setup = sorted(group, key=lambda ask: (ask.workload, ask.framework, ask.recipe))
    return tuple(_grouped(by_setup, _cell).values())


def _cell(ask: asks.AskAnswer) -> tuple[object, ...]:
    return ask.workload, ask.device, ask.batch_size, ask.precision, ask.data, ask.timing
