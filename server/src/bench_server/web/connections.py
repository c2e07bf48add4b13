"""Connections: deadlines, a limit per client address, and requests that are not HTTP/1.1.

uvicorn waits for a request's headers and body, and for a client that does not read its answer, as
long as the client likes. A thousand such clients use up the files of a process. Here each phase has
a deadline. Neither a closed connection nor a malformed request writes to the log.
"""

import re
from asyncio import AbstractEventLoop, BaseTransport, TimerHandle
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import httptools
import orjson
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from .client_networks import network
from .problems import problem

# An answer may take longer than its deadline as long as it is read at this rate.
LEAST_BYTES_A_SECOND = 1024
RETRY_SECONDS = 5
HOST = re.compile(rb"[\w.~!$&'()*+,;=%-]*(:[0-9]{0,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{0,5})?")


class Limits(NamedTuple):
    """Limits of a client.

    ``header_seconds``: until a request's headers are complete, from the connection's first moment
    or the request's first byte. ``body_seconds``: until a body is complete; in each such period an
    answer must be read at ``LEAST_BYTES_A_SECOND``, once the system's buffers are full.
    ``per_address`` and ``total``: connections at once, in this process. ``proxies``: addresses
    without a limit of their own.
    """

    header_seconds: float = 10.0
    body_seconds: float = 30.0
    per_address: int = 256
    total: int = 8192
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()


class Connections:
    """Creates a connection's protocol. Give it to uvicorn as ``http``; each worker gets a copy."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.by_address: Counter[str] = Counter()

    def __call__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: AbstractEventLoop | None = None,
    ) -> "BoundedProtocol":
        return BoundedProtocol(self, config, server_state, app_state, _loop)

    def admit(self, address: str) -> bool:
        """Count one more connection of an address, unless it or the process has too many."""
        if self.by_address.total() >= self.limits.total:
            return False
        client = network(address)
        if self.by_address[client] >= self.limits.per_address and not self._proxy(address):
            return False
        self.by_address[client] += 1
        return True

    def release(self, address: str) -> None:
        client = network(address)
        self.by_address[client] -= 1
        if not self.by_address[client]:
            del self.by_address[client]

    def _proxy(self, address: str) -> bool:
        return any(ip_address(address) in network for network in self.limits.proxies)


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 on one connection, with deadlines."""

    def __init__(
        self,
        connections: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        loop: AbstractEventLoop | None,
    ) -> None:
        super().__init__(config, server_state, app_state, loop)
        self._all = connections
        self._limits = connections.limits
        self._address: str | None = None
        self._reading: TimerHandle | None = None
        self._writing: TimerHandle | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        # A socket of the file system has no address.
        address = str((transport.get_extra_info("peername") or ("local",))[0])
        if not self._all.admit(address):
            self.transport = cast(Any, transport)
            self._refuse(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "too_many_connections",
                f"{address} or all clients together have too many open connections",
                f"close some and try again in {RETRY_SECONDS} s",
            )
            return
        self._address = address
        super().connection_made(cast(Any, transport))
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._address is not None:
            self._all.release(self._address)
        self._stop(self._reading)
        self._stop(self._writing)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # Empty lines before a request begin no message, but end uvicorn's keep-alive period.
        if self._reading is None and not self._answering:
            self._expect_headers()
        # As in uvicorn, without its warning for each malformed request and each upgrade.
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The request is answered as HTTP/1.1; what follows it is another protocol.
            self.cycle.keep_alive = False
        except httptools.HttpParserError as error:
            self._refuse_malformed(error.__context__)

    def on_message_begin(self) -> None:
        if self._reading is None:
            self._expect_headers()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        _require_one_host(self.headers, self.parser.get_http_version())
        super().on_headers_complete()
        self._expect(self._limits.body_seconds, self._late_body)

    def on_message_complete(self) -> None:
        self._stop(self._reading)
        self._reading = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._expect_reading()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._expect_reading()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        if not self.transport.is_closing():  # else the rest of the answer has the deadline
            self._stop(self._writing)
        super().resume_writing()

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_headers(self) -> None:
        self._expect(self._limits.header_seconds, self._late_headers)

    def _expect(self, seconds: float, late: Callable[[], None]) -> None:
        self._stop(self._reading)
        self._reading = self.loop.call_later(seconds, late)

    def _expect_reading(self) -> None:
        unread_bytes = self.transport.get_write_buffer_size()
        if not unread_bytes:
            return

        def late() -> None:
            read_bytes = unread_bytes - self.transport.get_write_buffer_size()
            if read_bytes >= self._limits.body_seconds * LEAST_BYTES_A_SECOND:
                self._expect_reading()
            else:
                self.transport.abort()

        self._stop(self._writing)
        self._writing = self.loop.call_later(self._limits.body_seconds, late)

    @staticmethod
    def _stop(timer: TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()

    def _late_headers(self) -> None:
        if self._answering:  # the timer belongs to an earlier request
            self._expect_headers()
            return
        self._refuse_late("headers", self._limits.header_seconds)

    def _late_body(self) -> None:
        seconds = self._limits.body_seconds
        if self._answering and self.flow.read_paused:  # the server has not read what came
            self._expect(seconds, self._late_body)
        elif self.cycle.response_started:
            self.transport.close()
            self._expect_reading()
        else:
            self._refuse_late("body", seconds)

    def _refuse_malformed(self, cause: BaseException | None) -> None:
        if self.pipeline or (self._answering and not self.cycle.more_body):
            self.cycle.keep_alive = False  # the requests before it are answered
        elif self._answering and self.cycle.response_started:
            self.transport.close()
        else:
            detail = str(cause) if isinstance(cause, _BadHost) else "the request is not HTTP/1.1"
            hint = "send a request of RFC 9112, with one Host header"
            self._refuse(HTTPStatus.BAD_REQUEST, "malformed_request", detail, hint)

    def _refuse_late(self, what: str, seconds: float) -> None:
        detail = f"the request's {what} took longer than {seconds:g} s"
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, "request_timeout", detail, "send it in one go")

    def _refuse(self, status: HTTPStatus, code: str, detail: str, hint: str) -> None:
        body = orjson.dumps(problem(status, code, detail, "connection", hint).model_dump())
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}",
            "content-type: application/problem+json",
            f"content-length: {len(body)}",
            f"retry-after: {RETRY_SECONDS}",
            "connection: close",
        )
        self.transport.write("\r\n".join((*head, "", "")).encode() + body)
        self.transport.close()


class _BadHost(ValueError):
    """The ``Host`` headers of a request are none that it may have (RFC 9112, section 3.2)."""


def _require_one_host(headers: list[tuple[bytes, bytes]], http_version: str) -> None:
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) > 1 or (not hosts and http_version == "1.1"):
        raise _BadHost(f"the request has {len(hosts)} Host headers, one is needed")
    for host in hosts:
        try:
            valid = HOST.fullmatch(host) and (urlsplit(b"//" + host).port or 0) >= 0
        except ValueError:
            valid = False
        if not valid:
            raise _BadHost("the Host header names no host")
