"""Middleware: each answer names the log entries that it follows from."""

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..db.store import UNAVAILABLE, Store
from ..projection import position
from ..projection.position import Position
from . import problems
from .threads import in_own_thread

AS_OF_HEADER = "trainmark-as-of"
# Paths whose answers follow from no log entry, or name the entries themselves.
WITHOUT_AS_OF = ("/static/", "/tile/", "/checkpoint", "/healthz", "/readyz", "/metrics", "/docs")


class AsOf:
    """Reads the projected position before the answer, which includes at least these entries."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        if scope["type"] != "http" or scope["method"] != "GET" or path.startswith(WITHOUT_AS_OF):
            await self.app(scope, receive, send)
            return
        try:
            at = await in_own_thread(projected, scope["app"].state.store)
        except UNAVAILABLE as error:  # the application's handlers are inside of this middleware
            await problems.unavailable(Request(scope), error)(scope, receive, send)
            return
        stopped = at.stopped_reason is not None
        scope.setdefault("state", {}).update(as_of=at.next_index, stopped=stopped)

        async def with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[AS_OF_HEADER] = str(scope["state"]["as_of"])
            await send(message)

        await self.app(scope, receive, with_header)


def projected(store: Store) -> Position:
    with store.reading() as session:
        return position.read(session.connection())
