"""Middleware of every answer: security headers, and HEAD like GET without a body."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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


class EveryAnswer:
    """Adds the security headers, and answers HEAD as GET without the body (RFC 9110, section
    9.3.2). The answer to an unexpected error is sent outside of all middleware; :mod:`.problems`
    adds the headers there."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        is_head = scope["method"] == "HEAD"
        asked = {**scope, "method": "GET"} if is_head else scope

        async def completed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            elif is_head:
                message = {**message, "body": b""}
            await send(message)

        try:
            await self.app(asked, receive, completed)
        finally:
            scope["route"] = asked.get("route")  # for the metrics
