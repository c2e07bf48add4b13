"""ETags: an answer that has not changed is not sent again (RFC 9110, sections 8.8.3 and 13.1.2)."""

import hashlib

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

KEPT_IN_304 = ("cache-control", "etag", "vary")


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
