"""Middleware: boards and comparisons are answered from the last rendering while the next is made.

An answer follows from its address and the projected entries alone, and is made once for all who ask
for it. It is sent for ``STALE_SECONDS`` after it was last current; ``Cache-Control: no-cache`` asks
for one that is current now (RFC 9111, section 5.2.1.4). A follower makes recently asked ones again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple, cast

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..db.store import UNAVAILABLE
from .as_of import projected
from .threads import in_own_thread

PATHS = ("/", "/compare", "/api/v1/leaderboard", "/api/v1/compare")
STALE_SECONDS = 1.0
# A busy log does not make the server compute one answer again sooner than this.
REMADE_SECONDS = 0.4
# The operator's commands can change answers without a log entry (published figures).
LONGEST_SECONDS = 9.0
# The follower makes an answer again for this time after the last request for it.
ASKED_SECONDS = 60.0
POLL_SECONDS = 0.1
# Making answers that nobody asked for within STALE_SECONDS takes a quarter of the time at most.
REST = 3
MOST_ANSWERS = 64
LARGEST_BYTES = 512 * 1024
# Scheme, host, path and query, because pages name their own address; whether gzip is accepted.
Key = tuple[str, str, str, bytes, bool]


class Kept(NamedTuple):
    """``current_at``: when the projected position was last ``as_of``. ``route`` is for metrics."""

    as_of: int
    made_at: float
    current_at: float
    asked_at: float
    request: Scope
    route: Any
    start: Message
    body: Message


class KeptAnswers:
    """Keeps answers in the application's state (``kept``), the last asked for at the end."""

    def __init__(
        self, app: ASGIApp, stale_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.app, self.stale_seconds, self.clock = app, stale_seconds, clock
        self._flights: dict[Any, asyncio.Task[Kept | None]] = {}
        self._follower: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        may_keep = scope["type"] == "http" and scope["method"] == "GET" and scope["path"] in PATHS
        kept = await self._kept(scope) if may_keep else None
        if kept is None:
            await self.app(scope, receive, send)
            return
        if self.stale_seconds and (self._follower is None or self._follower.done()):
            self._follower = asyncio.create_task(self._follow(scope["app"]))
        scope["route"] = kept.route
        # Outer middleware may add headers of its own to the message.
        await send({**kept.start, "headers": list(kept.start["headers"])})
        await send(kept.body)

    async def remake(self, app: Any) -> float | None:
        """Make one stale answer, the last asked for. Returns seconds until the next, or None."""
        began = self.clock()
        answers = (await self._renewed(app)).items()
        lately = [item for item in answers if began - item[1].asked_at < ASKED_SECONDS]
        for key, kept in reversed(lately):
            if kept.current_at < began and began - kept.made_at >= REMADE_SECONDS:
                await self._flight(key, kept.request)
                rest = REST if began - kept.asked_at > STALE_SECONDS else 0
                return rest * (self.clock() - began)
        return POLL_SECONDS if lately else None

    async def _follow(self, app: Any) -> None:
        while (pause := await self.remake(app)) is not None:
            await asyncio.sleep(pause)

    async def _kept(self, scope: Scope) -> Kept | None:
        """The answer to a request; None if it cannot be kept."""
        now, headers, answers = self.clock(), Headers(scope=scope), scope["app"].state.kept
        host, gzip = headers.get("host", ""), "gzip" in headers.get("accept-encoding", "")
        key = (scope["scheme"], host, scope["path"], scope["query_string"], gzip)
        names = [(b"host", host.encode("latin-1")), *[(b"accept-encoding", b"gzip")] * gzip]
        exact = "no-cache" in headers.get("cache-control", "")
        oldest = now if exact else now - self.stale_seconds
        kept: Kept | None = answers.get(key)
        # One that was begun for earlier requests may be too old for this one.
        while kept is None or kept.current_at < oldest:
            request = {**scope, "headers": names, "client": None}
            if (kept := await self._flight(key, request)) is None:
                return None
        if key in answers:
            answers[key] = answers.pop(key)._replace(asked_at=now)
        return kept

    def _flight(self, key: Key, request: Scope) -> Awaitable[Kept | None]:
        flight = (asyncio.get_running_loop(), key)
        if flight not in self._flights:
            self._flights[flight] = asyncio.create_task(self._made(key, request))
            self._flights[flight].add_done_callback(lambda _: self._flights.pop(flight))
        return asyncio.shield(self._flights[flight])

    async def _made(self, key: Key, request: Scope) -> Kept | None:
        began = self.clock()
        answers = await self._renewed(request["app"])
        if key in answers and answers[key].current_at >= began:
            return answers[key]
        kept: Kept | None = None
        scope, sent = {**request, "state": {}}, asyncio.Queue[Message]()
        try:
            await self.app(scope, asyncio.Queue[Message]().get, sent.put)
            messages = [sent.get_nowait() for _ in range(sent.qsize())]
            if len(messages) == 2 and messages[0]["status"] == 200:
                asked_at = answers[key].asked_at if key in answers else began
                as_of, route = scope["state"]["as_of"], scope.get("route")
                kept = Kept(as_of, began, began, asked_at, request, route, *messages)
        finally:
            if kept is None or len(kept.body["body"]) > LARGEST_BYTES:
                answers.pop(key, None)
            else:
                answers[key] = kept
            for oldest in list(answers)[:-MOST_ANSWERS]:
                del answers[oldest]
        return kept

    async def _renewed(self, app: Any) -> dict[Key, Kept]:
        now, answers = self.clock(), cast(dict[Key, Kept], app.state.kept)
        with suppress(*UNAVAILABLE):
            as_of = (await in_own_thread(projected, app.state.store)).next_index
            for key, kept in list(answers.items()):
                if kept.as_of == as_of and now - kept.made_at < LONGEST_SECONDS:
                    answers[key] = kept._replace(current_at=max(now, kept.current_at))
        return answers
