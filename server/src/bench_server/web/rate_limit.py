"""Middleware: rate limit per client address, an optional read token, read-only mode."""

import hmac
import math
import time
from base64 import b64decode

from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import ReadOnly, TooManyRequests
from . import problems
from .client_networks import host_of, network

# Paths open without a token, for load balancers, proxies and agents that post.
OPEN_PATHS = ("/healthz", "/readyz", "/static/")
READING = ("GET", "HEAD", "OPTIONS")
# A step that no gradual correction of the clock makes between two requests.
CLOCK_SET_BACK_SECONDS = 1.0


class Rate:
    """A sliding window per client, in this process's memory. ``off`` disables the limit."""

    def __init__(self, limit: str) -> None:
        self._item = None if limit == "off" else parse(limit)
        self._limiter = _new_windows()
        self._ahead = _ahead()

    def spend(self, who: str, name: str, cost: int = 1) -> None:
        """Count ``cost`` requests. A batch of more lines than the window has costs what its
        own request leaves, so it is not refused for ever. Raises TooManyRequests."""
        if self._item is None or cost < 1:
            return
        # Times in the future would fill the windows until the clock gets there.
        if (ahead := _ahead()) < self._ahead - CLOCK_SET_BACK_SECONDS:
            self._limiter = _new_windows()
        self._ahead = ahead
        if self._limiter.hit(self._item, who, cost=min(cost, max(1, self._item.amount - 1))):
            return
        opens_at = self._limiter.get_window_stats(self._item, who).reset_time
        raise TooManyRequests(name, str(self._item), max(1, math.ceil(opens_at - time.time())))


def _privately(send: Send) -> Send:
    """Send answers that no shared cache may keep (RFC 9111, section 5.2.2.7)."""

    async def privately(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            said = [part.strip() for part in headers.get("cache-control", "").split(",")]
            kept = [part for part in said if part and part != "public"]
            headers["cache-control"] = ", ".join(["private", *kept])
        await send(message)

    return privately


def _new_windows() -> MovingWindowRateLimiter:
    return MovingWindowRateLimiter(MemoryStorage())


def _ahead() -> float:
    """Seconds by which the wall clock, which windows use, is ahead of the monotonic one."""
    return time.time() - time.monotonic()


class AccessLimits:
    """Middleware: refuses a request before any other work."""

    def __init__(
        self, app: ASGIApp, rate: Rate, read_token: str | None, read_only: bool = False
    ) -> None:
        self.app = app
        self.rate = rate
        self.read_token = read_token
        self.read_only = read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(OPEN_PATHS):
            await self.app(scope, receive, send)
            return
        if self.read_token is not None:
            send = _privately(send)
        request = Request(scope)
        try:
            self.rate.spend(network(host_of(request)), "an address may send")
        except TooManyRequests as error:
            await problems.refusal(request, error)(scope, receive, send)
            return
        if self.read_only and request.method not in READING:
            await problems.refusal(request, ReadOnly())(scope, receive, send)
            return
        if request.method in ("GET", "HEAD") and not self._may_read(request):
            document = problems.problem(
                401,
                "unauthorized",
                "this server requires its read token",
                "Authorization",
                "send Authorization: Bearer TOKEN; browsers ask for it as a password",
            )
            challenge = {"WWW-Authenticate": 'Basic realm="Trainmark", charset="UTF-8"'}
            await problems.answer(request, document, challenge)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _may_read(self, request: Request) -> bool:
        if self.read_token is None:
            return True
        kind, _, value = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            try:
                value = b64decode(value, validate=True).decode().partition(":")[2]
            except ValueError:
                return False
        elif kind.lower() != "bearer":
            return False
        return hmac.compare_digest(value.encode(), self.read_token.encode())
