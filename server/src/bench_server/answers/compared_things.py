"""The things of a comparison: what an id names, its figures and its name."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlmodel import Session

from bench_protocol.base import format as people
from bench_protocol.base.names import slug

from ..db.tables import PublishedFigure
from ..errors import InvalidQuery, NotFound
from ..ranking import published
from ..ranking.figures import Figure, Setup
from ..ranking.medians import names_machine
from ..ranking.rows import figure_of_result
from . import stored_figures, stored_results
from .types.comparison import ThingKind

SETUP = "setup-"
MOST_COMPARED = 20
HINT_IDS = (
    "ids=A,B with hardware slugs, ids of machines, results and published figures, or setup-ID for "
    "the set-up of result ID"
)


class ComparedId(NamedTuple):
    """``further`` distinguishes set-ups with equal names; ``page_bytes``: of a result."""

    id: str
    kind: ThingKind
    name: str
    hardware_slug: str
    hardware: str
    further: str = ""
    page_bytes: int | None = None


def compared_ids(text: str, at_least: int = 2) -> tuple[str, ...]:
    """Read ``ids=a,b,c``, each once. Raises InvalidQuery for too few, or more than twenty."""
    ids = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not at_least <= len(ids) <= MOST_COMPARED:
        raise InvalidQuery(
            f"ids names {len(ids)} different things, 2 to {MOST_COMPARED} can be compared",
            field="ids",
            hint=HINT_IDS,
        )
    for item in ids:
        if slug(item) != item.replace("--", "-"):
            raise InvalidQuery(
                f"{item[:100]!r} is neither a hardware slug nor a result id",
                field="ids",
                hint=HINT_IDS,
            )
    return ids


def find(session: Session, item: str) -> tuple[ComparedId, list[Figure]]:
    """The thing, and its figures, fastest first. Raises InvalidQuery if the id names nothing."""
    figures = stored_figures.hardware_figures(session, item)
    if figures:
        name = figures[0].hardware
        return ComparedId(item, "hardware", name, item, name), figures
    figures = stored_figures.machine_figures(session, item)
    if figures:
        first = names_machine(figures)
        name = f"{first.hardware}, machine {item[:8]}"
        return ComparedId(item, "machine", name, first.hardware_slug, first.hardware), figures
    row = session.get(PublishedFigure, item)
    if row is not None:
        name = f"{row.hardware}, {Setup.of(row).words}"
        return _setup_thing(item, "published", name, row), [published.figure(row)]
    return _find_result(session, item)


def _find_result(session: Session, item: str) -> tuple[ComparedId, list[Figure]]:
    whole = item.startswith(SETUP)
    try:
        _, row = stored_results.result_with_id(session, item.removeprefix(SETUP))
    except NotFound:
        raise InvalidQuery(
            f"ids: {item[:100]!r} is no hardware or machine with ranked results, no result, no "
            "set-up and no published figure",
            field="ids",
            hint="GET /api/v1/leaderboard lists hardware_slug, GET /api/v1/results lists id and "
            "machine_id; setup-ID is the set-up of a result",
        ) from None
    setup = Setup.of(row)
    name = f"{row.hardware}, {setup.words}" + ("" if whole else f", result {item[:8]}")
    thing = _setup_thing(item, "setup" if whole else "result", name, row)
    if whole:
        of_hardware = stored_figures.hardware_figures(session, row.hardware_slug)
        same = [f for f in of_hardware if (f.subject.workload, f.setup) == (row.workload, setup)]
        return thing, same
    thing = thing._replace(page_bytes=row.page_bytes)
    return thing, [figure_of_result(row)] if row.rankable else []


def _setup_thing(item: str, kind: ThingKind, name: str, row: Any) -> ComparedId:
    further = (
        f"{row.workload}, batch {row.batch_size:,}, {row.data} data, on {row.device}, "
        f"{row.timing} timing"
    )
    return ComparedId(item, kind, name, row.hardware_slug, row.hardware, further)


def names_of(things: Sequence[ComparedId]) -> list[str]:
    """Names of the things, with details added to equal names, and page sizes that differ."""
    times = Counter(thing.name for thing in things)
    names = [t.name + f", {t.further}" * (times[t.name] > 1 and bool(t.further)) for t in things]
    if len({thing.page_bytes for thing in things} - {None}) < 2:
        return names
    pages = [thing.page_bytes and f", pages of {people.size(thing.page_bytes)}" for thing in things]
    return [name + (size or "") for name, size in zip(names, pages, strict=True)]
