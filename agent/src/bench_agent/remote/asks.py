"""The asks of a server: what it wants measured again on this hardware.

A server that does not answer in time asks for nothing: a run never waits for it. The draw is
computed again here, so a server cannot choose whom it asks for what.
"""

from collections.abc import Iterable
from urllib.parse import quote

import httpx
from pydantic import BaseModel

from bench_protocol.base import strict_json
from bench_protocol.base.errors import ProtocolError
from bench_protocol.payload.result import Asked
from bench_protocol.trust import asks
from bench_protocol.trust.asks import HardwareSetup, Reason

from ..base.errors import ServerUnreachable
from .connection import Connection, reading, within

# Time limit of all requests together.
WAIT_SECONDS = 5.0


class ServerAsk(BaseModel):
    """One set-up that a server wants; fields that it adds later are ignored."""

    hardware_slug: str
    workload: str
    workload_digest: str
    framework: str
    device: str
    recipe: str
    batch_size: int
    precision: str
    data: str
    timing: str
    reason: Reason
    result: str | None

    @property
    def setup(self) -> HardwareSetup:
        return HardwareSetup(*(getattr(self, name) for name in HardwareSetup._fields))


class Draw(BaseModel):
    """A server's draw of a day; no root before the first one."""

    root: str | None
    asks: list[ServerAsk]


def wanted(
    server: str,
    token: str | None,
    hardware_slugs: Iterable[str],
    *,
    wait_seconds: float = WAIT_SECONDS,
    transport: httpx.BaseTransport | None = None,
) -> list[tuple[ServerAsk, Asked]]:
    """What a server wants of this hardware, the most wanted first, each with what its result names;
    none where it does not answer within ``wait_seconds``, or not as a server does."""

    def fetch() -> list[tuple[ServerAsk, Asked]]:
        connection = Connection(
            server, token, transport=transport, timeout=wait_seconds, patience_seconds=0.0
        )
        try:
            with reading(server):
                paths = ((slug, f"/api/v1/asks?hardware={quote(slug)}") for slug in hardware_slugs)
                return [
                    one for slug, path in paths for one in _drawn(connection.content(path), slug)
                ]
        finally:
            connection.close()

    try:
        return within(wait_seconds, fetch)
    except (TimeoutError, ServerUnreachable, ProtocolError):
        return []


def _drawn(raw: bytes, slug: str) -> list[tuple[ServerAsk, Asked]]:
    draw = Draw.model_validate(strict_json.loads(raw))
    if draw.root is None:
        return []
    return [
        (ask, Asked(root=draw.root, reason=ask.reason, result=ask.result))
        for ask in draw.asks
        if ask.hardware_slug == slug and asks.is_drawn(draw.root, ask.setup, ask.reason)
    ]
