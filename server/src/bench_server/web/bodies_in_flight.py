"""Middleware: how many bytes of requests' bodies a process holds at a time.

A body is in memory from its first byte until its request is answered. Without a bound, connections
that send slowly hold as much as they like. A body beyond the bound of its client's network, or of
the process, is refused; the client sends it again.
"""

from collections import Counter

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import TooManyBytes
from .client_networks import host_of, network

NETWORK_BYTES = 16 * 1024 * 1024
PROCESS_BYTES = 32 * 1024 * 1024
# The last 8 MiB are for networks that hold at most 512 KiB: a few large senders leave them free.
LAST_BYTES, LITTLE_BYTES = 8 * 1024 * 1024, 512 * 1024


class BodiesInFlight:
    """Counts the bytes of each body as they come."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.by_network: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send)
            return
        client, held = network(host_of(Request(scope))), 0

        async def counted() -> Message:
            nonlocal held
            message = await receive()
            came = len(message.get("body", b""))
            holds = self.by_network[client] + came
            if holds > NETWORK_BYTES:
                raise TooManyBytes("an address may send", NETWORK_BYTES)
            most = PROCESS_BYTES - LAST_BYTES if holds > LITTLE_BYTES else PROCESS_BYTES
            if self.by_network.total() + came > most:
                raise TooManyBytes("this server holds", most)
            self.by_network[client] = holds
            held += came
            return message

        try:
            await self.app(scope, counted, send)
        finally:
            self.by_network[client] -= held
            if not self.by_network[client]:
                del self.by_network[client]
