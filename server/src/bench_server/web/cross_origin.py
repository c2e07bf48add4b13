"""Middleware: pages of other origins may read the API and the exports (CORS, Fetch Standard).

Everything that can be read is public, so any origin may read it. Nothing can be written from
another origin: a POST and its answer carry no CORS header.
"""

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

READABLE = ("/api/", "/openapi.json", "/dumps/", "/checkpoint", "/tile/", "/llms.txt")
HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": (
        "Content-Disposition, ETag, Link, Retry-After, Trainmark-As-Of"
    ),
}
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, HEAD",
    "Access-Control-Allow-Headers": "Authorization, If-None-Match",
    "Access-Control-Max-Age": "86400",
}
METHOD = "access-control-request-method"


class CrossOrigin:
    """Adds CORS headers to what can be read, and to the answer of a preflight request for it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(READABLE):
            await self.app(scope, receive, send)
            return
        asked = Headers(scope=scope).get(METHOD, "GET")
        preflight = scope["method"] == "OPTIONS"
        method = asked if preflight else scope["method"]
        if method not in ("GET", "HEAD"):
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = HEADERS | PREFLIGHT if preflight else HEADERS
                MutableHeaders(scope=message).update(headers)
            await send(message)

        await self.app(scope, receive, with_headers)
