"""A page of a list: rows with the fields that were asked for, and the address of the next page."""

from typing import Any

from fastapi import Request, Response
from pydantic import TypeAdapter

from ...answers.selection import Selection, chosen, names_of


def next_page(
    request: Request, place: str | int | None, parameter: str = "cursor"
) -> dict[str, str]:
    """The ``Link`` header of the next page (RFC 8288), none at the end.

    Args:
        place: where it begins, the value of ``parameter``.
    """
    if place is None:
        return {}
    url = request.url.include_query_params(**{parameter: str(place)})
    return {"Link": f'<{url.path}?{url.query}>; rel="next"'}


def listing(
    request: Request, kind: TypeAdapter[Any], answer: Any, rows: str, query: Selection | None = None
) -> Response:
    """An answer with ``next_cursor`` as JSON.

    Args:
        rows: the name of its rows.
    """
    names = chosen(query.fields) if query else None
    exclude = None
    if query is not None and names is not None:
        exclude = {rows: {"__all__": set(names_of(query.row_type)) - set(names)}}
    return Response(
        kind.dump_json(answer, exclude=exclude),
        media_type="application/json",
        headers=next_page(request, answer.next_cursor),
    )
