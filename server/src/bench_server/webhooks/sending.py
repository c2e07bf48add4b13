"""One POST to a webhook: to a checked address, by TLS, without redirects, bounded in time.

The answer's body is never read, and its headers are bounded by :mod:`http.client`.
"""

import socket
import ssl
import time
from contextlib import suppress
from http.client import HTTPException, HTTPSConnection
from threading import Lock, Timer

from .addresses import Endpoint, RefusedAddress, Resolve, endpoints, resolve_name, target

# For everything: name, connection, TLS, request and answer.
ATTEMPT_SECONDS = 10.0
MOST_ENDPOINTS = 4
GONE = 410


class NotDelivered(RuntimeError):
    """A message was not accepted; the message says why, without the address's path, which may be
    secret. ``gone``: the receiver wants no more (status 410)."""

    def __init__(self, words: str, gone: bool = False) -> None:
        super().__init__(words)
        self.gone = gone


class CheckedConnection(HTTPSConnection):
    """A connection to one of the checked addresses of a host, whose certificate must be the
    host's. It is cut at a moment of the monotonic clock, whatever it does then."""

    def __init__(
        self, host: str, port: int, found: list[Endpoint], ends: float, context: ssl.SSLContext
    ) -> None:
        super().__init__(host, port)
        self.cut = False
        self._found, self._ends, self._context = found, ends, context
        self._handle: socket.socket | None = None
        self._lock = Lock()  # of the handle: the timer's thread shuts it down
        self._timer = Timer(ends - time.monotonic(), self._cut)
        self._timer.daemon = True
        self._timer.start()

    def connect(self) -> None:
        error: OSError = OSError("the name has no address")
        for endpoint in self._found[:MOST_ENDPOINTS]:
            raw = socket.socket(endpoint.family, socket.SOCK_STREAM)
            raw.settimeout(max(0.01, self._ends - time.monotonic()))
            try:
                raw.connect(endpoint.address)
            except OSError as failed:
                raw.close()
                error = failed
                continue
            self._let_cut(raw)
            self.sock = self._context.wrap_socket(raw, server_hostname=self.host)
            return
        raise error

    def close(self) -> None:
        self._timer.cancel()
        super().close()
        with self._lock:
            if self._handle is not None:
                self._handle.close()
                self._handle = None

    def _let_cut(self, raw: socket.socket) -> None:
        """Keep a second handle of a connected socket, which TLS takes over. The timer may have
        passed while it connected, and does not come again."""
        with self._lock:
            if not self.cut:
                self._handle = raw.dup()
                return
        raw.close()
        raise TimeoutError

    def _cut(self) -> None:
        with self._lock:
            self.cut = True
            if self._handle is not None:
                with suppress(OSError):
                    self._handle.shutdown(socket.SHUT_RDWR)


def post(
    url: str,
    body: bytes,
    headers: dict[str, str],
    private_hosts: frozenset[str] = frozenset(),
    context: ssl.SSLContext | None = None,
    resolve: Resolve = resolve_name,
) -> None:
    """Post a message; return if the receiver answered with 2xx.

    Args:
        private_hosts: hosts that may have private addresses.
        context: whom TLS trusts; None trusts the system's authorities.

    Raises:
        NotDelivered: it was refused, or nobody answered in time.
    """
    ends = time.monotonic() + ATTEMPT_SECONDS
    try:
        to = target(url)
        found = endpoints(to, private_hosts, resolve)
    except RefusedAddress as error:
        raise NotDelivered(str(error)) from None
    except (OSError, UnicodeError) as error:
        raise NotDelivered(f"the name cannot be resolved: {_words(error)}") from None
    trusted = context or ssl.create_default_context()
    connection = CheckedConnection(to.host, to.port, found, ends, trusted)
    try:
        connection.request("POST", to.path, body, {"Content-Type": "application/json", **headers})
        status = connection.getresponse().status
        if connection.cut:  # headers that end early are accepted otherwise
            raise TimeoutError
    except (OSError, HTTPException, ValueError) as error:
        late = connection.cut or isinstance(error, TimeoutError)
        words = f"no answer within {ATTEMPT_SECONDS:g} s" if late else _words(error)
        raise NotDelivered(words) from None
    finally:
        connection.close()
    if 300 <= status < 400:
        raise NotDelivered(f"status {status}: redirects are not followed")
    if not 200 <= status < 300:
        raise NotDelivered(f"status {status}", gone=status == GONE)


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
