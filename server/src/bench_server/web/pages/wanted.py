"""``/wanted``: which hardware is most wanted, and why?"""

from collections import defaultdict
from dataclasses import dataclass

from sqlmodel import Session

from ...answers import asks


@dataclass(frozen=True)
class WantedHardware:
    """A hardware and its asks, the most wanted first."""

    slug: str
    name: str
    asks: tuple[asks.AskAnswer, ...]


@dataclass(frozen=True)
class WantedPage:
    """``/wanted``: hardware in the order of its most wanted set-up. ``day`` and ``root``: of the
    draw, null before the first one."""

    title: str
    json_href: str
    day: str | None
    root: str | None
    rows: tuple[WantedHardware, ...]


def wanted_page(session: Session) -> WantedPage:
    """Fill the context."""
    answer = asks.asks(session)
    of_hardware: defaultdict[tuple[str, str], list[asks.AskAnswer]] = defaultdict(list)
    for ask in answer.asks:
        of_hardware[ask.hardware_slug, ask.hardware].append(ask)
    rows = tuple(WantedHardware(*named, tuple(found)) for named, found in of_hardware.items())
    return WantedPage("Most wanted hardware", "/api/v1/asks", answer.day, answer.root, rows)
