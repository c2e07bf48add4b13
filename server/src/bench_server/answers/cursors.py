"""Cursors: the position of a page's last row, so that new results do not shift pages."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

from ..errors import InvalidQuery


def write(*place: str | float | int) -> str:
    """A cursor for a row's position in its order."""
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def read(cursor: str, *kinds: type) -> tuple[Any, ...]:
    """Raises InvalidQuery if :func:`write` did not write it with parts of these types."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        place = json.loads(raw.decode("ascii"))
    except (ValueError, RecursionError):
        place = None
    if (
        isinstance(place, list)
        and len(place) == len(kinds)
        and all(type(part) is kind for part, kind in zip(place, kinds, strict=True))
        and all(abs(part) < 1e300 for part in place if isinstance(part, float))
        and all(part.isprintable() for part in place if isinstance(part, str))
    ):
        return tuple(place)
    raise _invalid()


def moment_of(text: str) -> datetime:
    """The moment in a cursor, in UTC. Raises InvalidQuery if it is none."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise _invalid() from None


def _invalid() -> InvalidQuery:
    return InvalidQuery(
        "cursor is not from this server", field="cursor", hint="copy next_cursor, or omit cursor"
    )
