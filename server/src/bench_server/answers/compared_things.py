"""The things of a comparison: what an id names, its figures and its name."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from sqlmodel import Session

from ..errors import InvalidQuery, NotFound
from ..ranking.figures import Figure
from ..ranking.medians import names_machine
from ..ranking.rows import figure_of_result
from . import queries
from .types import ThingKind

SETUP = "setup-"


class ComparedId(NamedTuple):
    """The thing that an id names. ``further`` distinguishes set-ups with equal names."""

    id: str
    kind: ThingKind
    name: str
    hardware_slug: str
    hardware: str
    further: str = ""


def find(session: Session, item: str) -> tuple[ComparedId, list[Figure]]:
    """The thing that an id names, and its figures, fastest first.

    Raises:
        InvalidQuery: the id names nothing that can be compared.
    """
    figures = queries.hardware_figures(session, item)
    if figures:
        first = figures[0]
        return ComparedId(item, "hardware", first.hardware, item, first.hardware), figures
    figures = queries.machine_figures(session, item)
    if figures:
        first = names_machine(figures)
        name = f"{first.hardware}, machine {item[:8]}"
        return ComparedId(item, "machine", name, first.hardware_slug, first.hardware), figures
    copied = queries.published_figure(session, item)
    if copied is not None:
        name = f"{copied.hardware}, {copied.setup.words}"
        return _setup_thing(item, "published", name, copied), [copied]
    return _find_result(session, item)


def _find_result(session: Session, item: str) -> tuple[ComparedId, list[Figure]]:
    whole = item.startswith(SETUP)
    try:
        _, row = queries.result_with_id(session, item.removeprefix(SETUP))
    except NotFound:
        raise InvalidQuery(
            f"ids: {item[:100]!r} is no hardware or machine with ranked results, no result, no "
            "set-up and no published figure",
            field="ids",
            hint="GET /api/v1/leaderboard lists hardware_slug, GET /api/v1/results lists id and "
            "machine_id; setup-ID is the set-up of a result",
        ) from None
    setup, hardware = queries.setup_of(row), row.hardware
    name = f"{hardware}, {setup.words}" + ("" if whole else f", result {item[:8]}")
    further = (
        f"{row.workload}, batch {setup.batch_size:,}, {setup.data} data, on {setup.device}, "
        f"{setup.timing} timing"
    )
    kind: ThingKind = "setup" if whole else "result"
    thing = ComparedId(item, kind, name, row.hardware_slug, hardware, further)
    if whole:
        of_hardware = queries.hardware_figures(session, row.hardware_slug)
        same = [f for f in of_hardware if (f.subject.workload, f.setup) == (row.workload, setup)]
        return thing, same
    return thing, [figure_of_result(row)] if row.rankable else []


def _setup_thing(item: str, kind: ThingKind, name: str, figure: Figure) -> ComparedId:
    setup = figure.setup
    further = (
        f"{figure.subject.workload}, batch {setup.batch_size:,}, on {setup.device}, "
        f"{setup.timing} timing"
    )
    return ComparedId(item, kind, name, figure.hardware_slug, figure.hardware, further)


def names_of(things: Sequence[ComparedId]) -> list[str]:
    """Names of the things, with details added to equal names."""
    times = Counter(thing.name for thing in things)
    return [f"{t.name}, {t.further}" if times[t.name] > 1 and t.further else t.name for t in things]
