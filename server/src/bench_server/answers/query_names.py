"""Names in queries: an unknown one is refused with 422, and with what there is.

Workloads are checked where parameters are read (:mod:`.filters`), because the catalogue is fixed;
frameworks and hardware here, because they are what the database has.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from sqlalchemy import func, select
from sqlmodel import Session

from bench_protocol.base.names import slug

from ..errors import InvalidQuery, NotFound
from ..ranking.rows import RESULTS, TABLE

# Frameworks that the agent has engines for. The server takes results of any other too.
FRAMEWORKS = ("jax", "mlx", "tensorflow", "torch")
LEAST_ALIKE = 0.6
ALL_HARDWARE = "GET /api/v1/hardware lists all hardware"
MOST_HARDWARE = 500


def require_known(session: Session, parameters: Any) -> None:
    """Check the framework and the hardware that a query names.

    Args:
        parameters: a model with any of ``framework``, ``hardware``, ``baseline``, ``cpu``, ``gpu``.

    Raises:
        InvalidQuery: a name is unknown.
    """
    framework = getattr(parameters, "framework", None)
    if framework and framework not in FRAMEWORKS and not _has(session, "framework", framework):
        names = sorted({*FRAMEWORKS, *frameworks(session)})
        raise InvalidQuery(
            f"framework: no framework {framework!r}; there are {', '.join(names)}",
            field="framework",
        )
    for field in ("hardware", "baseline", "cpu", "gpu"):
        wanted = getattr(parameters, field, None)
        if not wanted or is_hardware(session, wanted):
            continue
        # A baseline has a figure; a filter may be for results that are not ranked.
        if field == "hardware" and _has(session, "hardware_slug", wanted):
            continue
        raise unknown_hardware(session, wanted, field)


def unknown_hardware(session: Session, wanted: str, field: str) -> InvalidQuery:
    """The refusal of a parameter that names no hardware."""
    return InvalidQuery(
        f"{field}: no hardware {wanted[:100]!r}",
        field=field,
        hint=hint_of(nearest_hardware(session, wanted), ALL_HARDWARE),
    )


def no_hardware(session: Session, wanted: str) -> NotFound:
    """The refusal of an address that names no hardware with figures."""
    near = nearest_hardware(session, wanted)
    return NotFound(
        f"no hardware {wanted[:100]!r} with ranked results",
        field="slug",
        hint=hint_of(near, ALL_HARDWARE),
        near=near,
    )


def nearest_hardware(session: Session, wanted: str) -> str | None:
    """The slug most like this slug or name of a hardware."""
    return nearest(slug(wanted), [known for known, _ in ranked_hardware(session)])


def nearest(wanted: str, names: Iterable[str]) -> str | None:
    """The name that has all parts of the wanted one, the shortest of several; else the most alike,
    if it is alike at all. Parts are separated by dashes."""
    names = sorted(names, key=lambda name: (len(name), name))
    parts = set(wanted.split("-"))
    containing = (name for name in names if parts <= set(name.split("-")))
    alike = get_close_matches(wanted, names, 1, LEAST_ALIKE)
    return next(containing, alike[0] if alike else None)


def hint_of(near: str | None, otherwise: str) -> str:
    return f"did you mean {near}? {otherwise}" if near else otherwise


def _has(session: Session, column: str, value: str) -> bool:
    """Whether any result has this value: the newest one, by the column's index of lists."""
    newest = RESULTS.c.received_at.desc(), RESULTS.c.submission_id.desc()
    query = select(RESULTS.c.submission_id).where(RESULTS.c[column] == value)
    query = query.order_by(*newest).limit(1)
    return session.connection().scalar(query) is not None


def frameworks(session: Session) -> list[str]:
    query = select(TABLE.c.framework).where(TABLE.c.level == "hardware").distinct()
    return sorted(session.connection().scalars(query))


def is_hardware(session: Session, slug: str) -> bool:
    """Whether any figure, measured or published, is of this hardware."""
    levels = TABLE.c.level.in_(["hardware", "published"])
    query = select(TABLE.c.id).where(levels, TABLE.c.hardware_slug == slug).limit(1)
    return session.connection().scalar(query) is not None


def ranked_hardware(session: Session) -> list[tuple[str, str]]:
    """Slug and name of hardware with figures, by name."""
    query = (
        select(TABLE.c.hardware_slug, func.min(TABLE.c.hardware))
        .where(TABLE.c.level.in_(["hardware", "published"]))
        .group_by(TABLE.c.hardware_slug)
        .order_by(func.min(TABLE.c.hardware))
        .limit(MOST_HARDWARE)
    )
    return [(slug, name) for slug, name in session.connection().execute(query)]
