"""Middleware of every answer: security headers, HEAD like GET without a body, and requests whose
``Accept-Encoding`` and ``Range`` mean what RFC 9110 says."""

import re
from asyncio import CancelledError
from collections.abc import Sequence

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import problems

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
        "script-src 'self'; connect-src 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


RANGE = re.compile(rb"bytes=([0-9]{1,15})-([0-9]{0,15})")


class EveryAnswer:
    """HEAD is answered as GET without the body (RFC 9110, section 9.3.2). A request that is
    cancelled, because the server ends, gets a 503. Unexpected errors are answered outside of all
    middleware; :mod:`.problems` adds the headers there."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        is_head = scope["method"] == "HEAD"
        asked = {**scope, "headers": _plain(scope["headers"])}
        asked |= {"method": "GET"} if is_head else {}

        has_begun = False

        async def completed(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            elif is_head:
                message = {**message, "body": b""}
            await send(message)

        try:
            await self.app(asked, receive, completed)
        except CancelledError:
            if not has_begun:
                await problems.ending(Request(asked))(asked, receive, completed)
        finally:
            scope["route"] = asked.get("route")  # for the metrics


def _plain(headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers with "gzip" in place of an ``Accept-Encoding`` that accepts it, weights heeded
    (section 12.5.3), and without a ``Range`` that is no range (section 14.2)."""
    accepted = b",".join(value for name, value in headers if name == b"accept-encoding")
    weights = dict(map(_weighted, accepted.decode("latin-1").lower().split(",")))
    takes_gzip = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0))) > 0
    others = [
        (name, value)
        for name, value in headers
        if name != b"accept-encoding" and (name != b"range" or _is_range(value))
    ]
    return [*others, *[(b"accept-encoding", b"gzip")] * takes_gzip]


def _is_range(value: bytes) -> bool:
    match = RANGE.fullmatch(value)
    return match is not None and (not match[2] or int(match[1]) <= int(match[2]))


def _weighted(coding: str) -> tuple[str, float]:
    name, _, parameter = coding.partition(";")
    try:
        return name.strip(), float(parameter.replace(" ", "").removeprefix("q=") or 1)
    except ValueError:
        return name.strip(), 0.0
