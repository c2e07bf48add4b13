"""Names in queries: an unknown one is refused with 422, and with what there is.

Workloads are checked where parameters are read (:mod:`.filters`), because the catalogue is fixed;
frameworks, hardware and owners here, because they are what the database has.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from sqlalchemy import func, select
from sqlmodel import Session

from bench_protocol.base.names import slug

from ..db.tables import Owner, table_of
from ..errors import InvalidQuery, NotFound
from ..ranking.rows import RESULTS, TABLE

# Frameworks that the agent has engines for. The server takes results of any other too.
FRAMEWORKS = ("jax", "mlx", "tensorflow", "torch")
LEAST_ALIKE = 0.6
ALL_HARDWARE = "GET /api/v1/hardware lists all hardware"
ALL_OWNERS = "GET /api/v1/machines names the owner of each machine"
MOST_HARDWARE = 500
MOST_OWNERS = 500
MOST_NEAR = 6
OWNERS = table_of(Owner)


def require_known(session: Session, parameters: Any) -> None:
    """Raises InvalidQuery if one of these is unknown: ``framework``, ``owner``, ``hardware``,
    ``baseline``, ``cpu``, ``gpu``."""
    framework = getattr(parameters, "framework", None)
    if framework and framework not in FRAMEWORKS and not _has(session, "framework", framework):
        names = sorted({*FRAMEWORKS, *frameworks(session)})
        near = nearest(framework, names)
        raise InvalidQuery(
            f"framework: no framework {framework!r}; there are {', '.join(names)}",
            field="framework",
            hint=hint_of(near, "use one of them"),
            near=near,
        )
    for field in ("hardware", "baseline", "cpu", "gpu"):
        wanted = getattr(parameters, field, None)
        if not wanted or is_hardware(session, wanted):
            continue
        # A baseline has a figure; a filter may be for results that are not ranked.
        if field == "hardware" and _has(session, "hardware_slug", wanted):
            continue
        raise unknown_hardware(session, wanted, field)
    owner = getattr(parameters, "owner", None)
    if owner and not is_owner(session, owner):
        near = nearest_owners(session, owner)
        hint = hint_of(near, ALL_OWNERS)
        raise InvalidQuery(f"owner: no owner {owner!r}", field="owner", hint=hint, near=near)


def is_owner(session: Session, label: str) -> bool:
    query = select(OWNERS.c.label).where(OWNERS.c.label == label)
    return session.connection().scalar(query) is not None


def no_owner(session: Session, wanted: str) -> NotFound:
    return _none("owner", "owner", wanted[:80], nearest_owners(session, wanted), ALL_OWNERS)


def _none(kind: str, field: str, wanted: str, near: list[str], otherwise: str) -> NotFound:
    detail = f"no {kind} {wanted!r} with ranked results"
    return NotFound(detail, field=field, hint=hint_of(near, otherwise), near=near)


def nearest_owners(session: Session, wanted: str) -> list[str]:
    """Owners whose name contains this one, else those most alike."""
    label, connection = OWNERS.c.label, session.connection()
    names = select(label).order_by(label)
    containing = label != wanted, label.icontains(wanted, autoescape=True)
    found = list(connection.scalars(names.where(*containing).limit(MOST_NEAR)))
    if found:
        return found
    some = list(connection.scalars(names.limit(MOST_OWNERS)))
    return get_close_matches(wanted, some, MOST_NEAR, LEAST_ALIKE)


def unknown_hardware(session: Session, wanted: str, field: str) -> InvalidQuery:
    near = nearest_hardware(session, wanted)
    return InvalidQuery(
        f"{field}: no hardware {wanted[:100]!r}",
        field=field,
        hint=hint_of(near, ALL_HARDWARE),
        near=near,
    )


def no_hardware(session: Session, wanted: str) -> NotFound:
    near = nearest_hardware(session, wanted)
    return _none("hardware", "slug", wanted[:100], near, ALL_HARDWARE)


def nearest_hardware(session: Session, wanted: str) -> list[str]:
    """The slugs that this slug or name of a hardware fits, or is most like."""
    return nearest(slug(wanted), [known for known, _ in ranked_hardware(session)])


def nearest(wanted: str, names: Iterable[str]) -> list[str]:
    """Names with all parts (between dashes) of the wanted one, or else the one most alike."""
    names = sorted(names, key=lambda name: (len(name), name))
    parts = set(wanted.split("-"))
    containing = [name for name in names if parts <= set(name.split("-"))]
    return containing[:MOST_NEAR] or get_close_matches(wanted, names, 1, LEAST_ALIKE)


def hint_of(near: Sequence[str], otherwise: str) -> str:
    """``did you mean a, b or c?``, and what to do otherwise."""
    *others, last = near or ("",)
    named = f"{', '.join(others)} or {last}" if others else last
    return f"did you mean {named}? {otherwise}" if near else otherwise


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
