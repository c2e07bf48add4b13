"""The canonical address of a page: without empty parameters.

A form sends its empty fields too. Without a script the browser would show them all; with one, htmx
shows the address that it was redirected to.
"""

from fastapi import Request


class Moved(Exception):
    """The page has another address, a path with its query."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


def without_empty(query: str) -> str:
    """A query without parameters that are empty or have no ``=``. The others stay as they were
    written, in their order, repeated ones too; so a canonical query is returned unchanged."""
    return "&".join(part for part in query.split("&") if part.partition("=")[2])


async def canonical(request: Request) -> None:
    """Dependency of pages.

    Raises:
        Moved: the query has an empty parameter.
    """
    query = request.scope["query_string"].decode("latin-1")
    wanted = without_empty(query)
    if wanted != query:
        path = request.scope.get("raw_path", request.url.path.encode()).decode("latin-1")
        raise Moved(f"{path}?{wanted}" if wanted else path)
