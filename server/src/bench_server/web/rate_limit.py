"""Middleware: rate limit per client address and an optional read token."""

import hmac
import ipaddress
import math
import secrets
import time
from base64 import b64decode

from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import TooManyRequests
from . import problems

# Paths open without a token, for load balancers, proxies and agents that post.
OPEN_PATHS = ("/healthz", "/readyz", "/static/")


# Of this process: no address is kept, and a day's hashes tell nothing once it has ended.
_HASH_KEY = secrets.token_bytes(32)
# A site has at least a /64 of IPv6 addresses (RFC 6177).
SITE_BITS = 64
# A step that no gradual correction of the clock makes between two requests.
CLOCK_SET_BACK_SECONDS = 1.0


def sender(host: str) -> str:
    """The keyed hash of a client's address, of its /64 network for IPv6."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        network = host
    else:
        address = getattr(address, "ipv4_mapped", None) or address
        bits = SITE_BITS if address.version == 6 else address.max_prefixlen
        network = str(ipaddress.ip_network((address.packed, bits), strict=False))
    return hmac.digest(_HASH_KEY, network.encode(), "sha256").hex()


class Rate:
    """A sliding window per client, in this process's memory. ``off`` disables the limit."""

    def __init__(self, limit: str) -> None:
        self._item = None if limit == "off" else parse(limit)
        self._limiter = _new_windows()
        self._ahead = _ahead()

    def spend(self, who: str, name: str, cost: int = 1) -> None:
        """Count ``cost`` requests of a client.

        Raises:
            TooManyRequests: the window has no capacity for them.
        """
        if self._item is None:
            return
        # Times in the future would fill the windows until the clock gets there.
        if (ahead := _ahead()) < self._ahead - CLOCK_SET_BACK_SECONDS:
            self._limiter = _new_windows()
        self._ahead = ahead
        if self._limiter.hit(self._item, who, cost=cost):
            return
        opens_at = self._limiter.get_window_stats(self._item, who).reset_time
        raise TooManyRequests(name, str(self._item), max(1, math.ceil(opens_at - time.time())))


def _new_windows() -> MovingWindowRateLimiter:
    return MovingWindowRateLimiter(MemoryStorage())


def _ahead() -> float:
    """Seconds by which the wall clock, which windows use, is ahead of the monotonic one."""
    return time.time() - time.monotonic()


class AccessLimits:
    """Middleware: refuses a request before any other work."""

    def __init__(self, app: ASGIApp, rate: Rate, read_token: str | None) -> None:
        self.app = app
        self.rate = rate
        self.read_token = read_token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(OPEN_PATHS):
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        host = request.client.host if request.client else "unknown"
        try:
            self.rate.spend(host, "an address may send")
        except TooManyRequests as error:
            await problems.refusal(request, error)(scope, receive, send)
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
