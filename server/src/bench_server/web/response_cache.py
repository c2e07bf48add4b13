"""What is not worked out twice, and not sent twice.

An answer that has not changed is not sent again: ETags (RFC 9110, sections 8.8.3 and 13.1.2).
Boards and comparisons are what most people ask for and what costs most; they follow from the log,
so an answer holds for as long as the log has not grown.
"""

import hashlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..db.store import Store
from ..log import reader

KEPT_IN_304 = ("cache-control", "etag", "vary")
KEPT_PATHS = ("/", "/compare", "/api/v1/leaderboard", "/api/v1/compare")
# What an operator's command changes without a word in the log (published figures, a new index)
# shows after this time.
KEPT_SECONDS = 10.0
KEPT_ANSWERS = 64


class CachedAnswer(NamedTuple):
    """An answer, the log it is of, and how long it holds; ``route`` is what the metrics count."""

    log_size: int
    until: float
    route: Any
    start: Message
    body: Message


# Scheme, host, path and query: pages name their own address.
Key = tuple[str, str, str, bytes]
Answers = dict[Key, CachedAnswer]


class ResponseCache:
    """Gives an answer again while the log is as it was, so that it never hides a result.

    The application's state has the ``store`` and the answers, ``kept``.
    """

    def __init__(self, app: ASGIApp, clock: Callable[[], float] = time.monotonic) -> None:
        self.app = app
        self.clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] not in KEPT_PATHS:
            await self.app(scope, receive, send)
            return
        # Asked before the answer is worked out: it may know of more, and never of less.
        state = scope["app"].state
        size = await run_in_threadpool(_log_size, state.store)
        host = Headers(scope=scope).get("host", "")
        key = (scope["scheme"], host, scope["path"], scope["query_string"])
        kept = state.kept.get(key)
        if kept is None or kept.log_size != size or kept.until < self.clock():
            await self._answer(key, size, scope, receive, send)
            return
        scope["route"] = kept.route
        await send({**kept.start, "headers": list(kept.start["headers"])})
        await send(kept.body)

    async def _answer(
        self, key: Key, size: int, scope: Scope, receive: Receive, send: Send
    ) -> None:
        sent: list[Message] = []

        async def keep(message: Message) -> None:
            # Whoever is outside may add headers of its own to what it is handed.
            sent.append({**message, "headers": list(message.get("headers", ()))})
            await send(message)

        await self.app(scope, receive, keep)
        if len(sent) == 2 and sent[0]["status"] == 200 and not sent[1].get("more_body"):
            until = self.clock() + KEPT_SECONDS
            answers = scope["app"].state.kept
            answers.pop(key, None)
            answers[key] = CachedAnswer(size, until, scope.get("route"), *sent)
            if len(answers) > KEPT_ANSWERS:
                del answers[next(iter(answers))]


def _log_size(store: Store) -> int:
    with store.reading() as session:
        return reader.size(session)


class EntityTags:
    """Tags answers to GET that are sent in one piece; what is streamed stays as it is."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            await self.app(scope, receive, send)
            return
        held: list[Message] = []

        async def tagged(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                held.append(message)
                return
            if held and message["type"] == "http.response.body":
                start = held.pop()
                if not message.get("more_body"):
                    message = _tag(scope, start, message)
                await send(start)
            await send(message)

        await self.app(scope, receive, tagged)


def _tag(scope: Scope, start: Message, body: Message) -> Message:
    """Add the tag to the start, or make both a 304 where the asker has it; returns the body."""
    headers = MutableHeaders(scope=start)
    if "etag" not in headers:
        headers["etag"] = f'"{hashlib.sha256(body["body"]).hexdigest()[:32]}"'
    headers.setdefault("cache-control", "no-cache")
    asked = Headers(scope=scope).get("if-none-match", "")
    known = {tag.strip().removeprefix("W/") for tag in asked.split(",")}
    if asked.strip() != "*" and headers["etag"].removeprefix("W/") not in known:
        return body
    start["status"] = 304
    kept = [pair for pair in start["headers"] if pair[0].decode() in KEPT_IN_304]
    start["headers"] = kept
    return {"type": "http.response.body", "body": b""}
