"""A page of a list, and the address of the next page."""

from typing import Any

from fastapi import Request, Response
from pydantic import TypeAdapter


def next_page(
    request: Request, place: str | int | None, parameter: str = "cursor"
) -> dict[str, str]:
    """The ``Link`` header of the page that begins at ``place`` (RFC 8288), none at the end."""
    if place is None:
        return {}
    url = request.url.include_query_params(**{parameter: str(place)})
    return {"Link": f'<{url.path}?{url.query}>; rel="next"'}


def listing(
    request: Request, kind: TypeAdapter[Any], answer: Any, without: dict[str, Any] | None = None
) -> Response:
    """FastAPI would validate each row again, for a quarter of the time of the answer."""
    return Response(
        kind.dump_json(answer, exclude=without),
        media_type="application/json",
        headers=next_page(request, answer.next_cursor),
    )
