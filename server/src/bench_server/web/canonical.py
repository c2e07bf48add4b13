"""The canonical address of a page: without empty and repeated parameters.

A form sends its empty fields too. Without a script the browser would show them all; with one, htmx
shows the address that it was redirected to.
"""

import re

from fastapi import Request

# Between the ids of a comparison, as written and as browsers encode it.
COMMA = re.compile(",|%2C", re.IGNORECASE)


class Moved(Exception):
    """The page has another address, a path with its query."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


def tidy(query: str) -> str:
    """A query without empty or repeated parameters and ids, otherwise as it was written."""
    parts: dict[str, None] = {}
    named: set[str] = set()
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if name == "ids":
            ids = COMMA.split(value)
            new = [one for one in dict.fromkeys(ids) if one and one not in named]
            named.update(new)
            if len(new) < len(ids):
                value = ",".join(new)
        if value:
            parts[f"{name}={value}"] = None
    return "&".join(parts)


async def canonical(request: Request) -> None:
    """Dependency of pages. Raises Moved if the query has an empty or a repeated parameter."""
    query = request.scope["query_string"].decode("latin-1")
    wanted = tidy(query)
    if wanted != query:
        path = request.scope.get("raw_path", request.url.path.encode()).decode("latin-1")
        raise Moved(f"{path}?{wanted}" if wanted else path)
