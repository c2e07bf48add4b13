"""Middleware: entity tags (RFC 9110, section 8.8.3) and conditional requests (section 13.1.2).

Tags are made inside of compression and of the response cache, once for each answer. Conditions are
checked outside of both. A client that has an answer gets a 304 in place of it.
"""

import hashlib

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .as_of import AS_OF_HEADER

KEPT_IN_304 = {"cache-control", "etag", "vary", AS_OF_HEADER}


class EntityTags:
    """Tags answers to GET that are sent in one piece; what is streamed stays as it is."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        starts: list[Message] = []

        async def tagged(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                starts.append(message)
                return
            if starts and message["type"] == "http.response.body":
                start = starts.pop()
                if not message.get("more_body"):
                    headers = MutableHeaders(scope=start)
                    digest = hashlib.sha256(message.get("body", b"")).hexdigest()[:32]
                    headers.setdefault("etag", f'"{digest}"')
                    headers.setdefault("cache-control", "no-cache")
                await send(start)
            await send(message)

        await self.app(scope, receive, tagged)


class ConditionalRequests:
    """Compressed answers have weak tags: uncompressed, the same tag is that of other bytes."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        if_none_match = Headers(scope=scope).get("if-none-match", "")
        client_tags = {_opaque(tag) for tag in if_none_match.split(",")}
        unchanged = False

        async def conditional(message: Message) -> None:
            nonlocal unchanged
            if message["type"] == "http.response.start" and message["status"] == 200:
                headers = MutableHeaders(scope=message)
                tag = headers.get("etag", "")
                if tag and "content-encoding" in headers:
                    headers["etag"] = f"W/{_opaque(tag)}"
                unchanged = bool(tag) and (
                    if_none_match.strip() == "*" or _opaque(tag) in client_tags
                )
                if unchanged:
                    pairs = [pair for pair in message["headers"] if pair[0].decode() in KEPT_IN_304]
                    message = {**message, "status": 304, "headers": pairs}
            elif unchanged and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self.app(scope, receive, conditional)


def _opaque(tag: str) -> str:
    """A tag without the mark of a weak one: conditions compare tags weakly (section 13.1.2)."""
    return tag.strip().removeprefix("W/")
