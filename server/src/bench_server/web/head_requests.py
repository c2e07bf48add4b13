"""Middleware: HEAD answers like GET, without a body (RFC 9110, section 9.3.2)."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadRequests:
    """Converts each HEAD request to a GET and drops the body of the answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        get = {**scope, "method": "GET"}
        try:
            await self.app(get, receive, without_body)
        finally:
            scope["route"] = get.get("route")  # for the metrics
