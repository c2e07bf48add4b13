"""Middleware: which log entries an answer follows from, and a cache of answers.

Leaderboards and comparisons are requested most and cost most. They follow from the projected
entries, so an answer is valid until the projector's position changes. The cache holds what is sent:
an answer is compressed and tagged once, not for each request.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..db.store import UNAVAILABLE, Store
from ..projection import position
from ..projection.position import Position
from . import problems

AS_OF_HEADER = "trainmark-as-of"
# Paths whose answers follow from no log entry, or name the entries themselves.
WITHOUT_AS_OF = ("/static/", "/tile/", "/checkpoint", "/healthz", "/readyz", "/metrics", "/docs")
CACHED_PATHS = ("/", "/compare", "/api/v1/leaderboard", "/api/v1/compare")
# The operator's commands can change answers without a log entry (published figures). They show
# after this time.
CACHED_SECONDS = 10.0
# An answer this old is sent again although entries were applied since, so that a busy log does
# not make the server compute the same board for each request. The answer names its entries.
FRESH_SECONDS = 0.25
CACHED_ANSWERS = 64


class AsOf:
    """Reads the projected position before the answer is computed, so that the answer includes at
    least these entries. Pages find the position in ``request.state.as_of``, clients in a header."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        if scope["type"] != "http" or scope["method"] != "GET" or path.startswith(WITHOUT_AS_OF):
            await self.app(scope, receive, send)
            return
        try:
            projected = await run_in_threadpool(_projected, scope["app"].state.store)
        except UNAVAILABLE as error:  # the application's handlers are inside of this middleware
            await problems.unavailable(Request(scope), error)(scope, receive, send)
            return
        stopped = projected.stopped_reason is not None
        scope.setdefault("state", {}).update(as_of=projected.next_index, stopped=stopped)

        async def with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[AS_OF_HEADER] = str(scope["state"]["as_of"])
            await send(message)

        await self.app(scope, receive, with_header)


class CachedAnswer(NamedTuple):
    """An answer, the position that it is of, and when it was computed; ``route`` is for metrics."""

    as_of: int
    computed_at: float
    route: Any
    start: Message
    body: Message


# Scheme, host, path and query, because pages name their own address; whether gzip is accepted.
Key = tuple[str, str, str, bytes, bool]
Answers = dict[Key, CachedAnswer]


class ResponseCache:
    """Sends an answer again while the projector's position is the same, and for ``fresh_seconds``
    in any case. The application's state has the answers, ``cached``."""

    def __init__(
        self,
        app: ASGIApp,
        clock: Callable[[], float] = time.monotonic,
        fresh_seconds: float = FRESH_SECONDS,
    ) -> None:
        self.app = app
        self.clock = clock
        self.fresh_seconds = fresh_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] not in CACHED_PATHS:
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host, gzip = headers.get("host", ""), "gzip" in headers.get("accept-encoding", "")
        key = (scope["scheme"], host, scope["path"], scope["query_string"], gzip)
        as_of = scope["state"]["as_of"]
        cached = scope["app"].state.cached.get(key)
        if cached is None or not self._valid(cached, as_of):
            await self._answer(key, as_of, scope, receive, send)
            return
        scope["route"] = cached.route
        scope["state"]["as_of"] = cached.as_of
        await send({**cached.start, "headers": list(cached.start["headers"])})
        await send(cached.body)

    def _valid(self, cached: CachedAnswer, as_of: int) -> bool:
        age = self.clock() - cached.computed_at
        return age < self.fresh_seconds or (cached.as_of == as_of and age < CACHED_SECONDS)

    async def _answer(
        self, key: Key, as_of: int, scope: Scope, receive: Receive, send: Send
    ) -> None:
        sent: list[Message] = []
        began = self.clock()

        async def keep(message: Message) -> None:
            # Outer middleware may add headers of its own to the message.
            sent.append({**message, "headers": list(message.get("headers", ()))})
            await send(message)

        await self.app(scope, receive, keep)
        if len(sent) == 2 and sent[0]["status"] == 200 and not sent[1].get("more_body"):
            answers = scope["app"].state.cached
            answers.pop(key, None)
            answers[key] = CachedAnswer(as_of, began, scope.get("route"), *sent)
            if len(answers) > CACHED_ANSWERS:
                del answers[next(iter(answers))]


def _projected(store: Store) -> Position:
    with store.reading() as session:
        return position.read(session.connection())
