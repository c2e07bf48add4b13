"""HTTP to one server: its read token, its rate limit, and one plain sentence for each failure."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

import httpx

from bench_protocol.base.errors import ProtocolError

from .. import __version__
from ..base.errors import ServerUnreachable, UsageProblem
from ..base.terminal import write_error
from .http_client import open_http, proxy_of, words

Value = TypeVar("Value")
TIMEOUT_SECONDS = 20.0
# A rate-limited server asks for at most a minute; longer waits are left to the next run.
LONGEST_WAIT_SECONDS = 300.0
# A server that asks for no time, or for one in the past, is asked again after this.
LEAST_WAIT_SECONDS = 1.0
# For a request and its whole answer: one that comes byte by byte would never end.
WHOLE_SECONDS = 180.0
# Largest unpacked answer: a server may send a small body that unpacks to any size.
MAX_ANSWER_BYTES = 256 * 1024 * 1024
# Headers of the transfer; the answer that is handed on is unpacked and whole.
TRANSFER_HEADERS = (b"content-encoding", b"content-length", b"transfer-encoding")
# Statuses worth a retry; every other 4xx means that the server will never accept this envelope.
TRANSIENT = {408, 425, 429}
# The server is busy or limits the rate, and accepts the same request after a wait.
ASKS_TO_WAIT = {429, 503}
TOKEN_SETTING = "BENCH_SERVER_TOKEN"  # noqa: S105 - its name


def checked_address(server: str) -> str:
    """A server's address without blanks around it and a slash at its end.

    Raises:
        UsageProblem: it is no web address, or contains a password.
    """
    server = server.strip()
    try:
        parts = urlsplit(server)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise UsageProblem(
            f"{server!r} is not the address of a server; write http://HOST:PORT or https://..."
        )
    if parts.username is not None or parts.password is not None:
        raise UsageProblem(
            f"the server's address holds a name or password; write {parts.scheme}://HOST and set "
            f"{TOKEN_SETTING} to the server's read token"
        )
    return server.rstrip("/")


def token_for(server: str, environ: Mapping[str, str], *, named: bool) -> str | None:
    """The read token to send to a server. ``named``: the server was given with ``--server``, not
    taken from a result's address. If BENCH_SERVER is set, the token is sent only to that server.

    Raises:
        UsageProblem: no header can hold the token.
    """
    token = environ.get(TOKEN_SETTING, "").strip()
    home = environ.get("BENCH_SERVER")
    if not token or not (home or named):
        return None
    if not (token.isascii() and token.isprintable()):
        raise UsageProblem(f"{TOKEN_SETTING} has characters that no token has; copy it again")
    return token if not home or _origin(home) == _origin(server) else None


def headers_of(token: str | None) -> dict[str, str]:
    """The headers of every request; with the read token, if there is one. A board must have what
    was just sent."""
    agent = {"User-Agent": f"bench-agent/{__version__}", "Cache-Control": "no-cache"}
    return agent if token is None else agent | {"Authorization": f"Bearer {token}"}


def within(seconds: float, work: Callable[[], Value]) -> Value:
    """The outcome of work in another thread, which is left alone if it takes longer.

    Raises:
        TimeoutError: it does. Else what the work raises.
    """
    outcome: Future[Value] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome.result(seconds)


@contextmanager
def reading(server: str) -> Iterator[None]:
    """A block that reads an answer of a server. Where it has another form than a server's, the
    block ends in ``ServerUnreachable``."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, ProtocolError):
            raise
        raise ServerUnreachable(f"{server} is not a Trainmark server") from error


class Connection:
    """Requests to one server. Redirects are not followed, so the token is sent only to its origin.

    ``timeout``: seconds for each part of a request; ``WHOLE_SECONDS`` bounds all of them.
    ``patience_seconds``: longest wait that the server may ask for, in total for a request.
    """

    def __init__(
        self,
        server: str,
        token: str | None = None,
        *,
        transport: httpx.BaseTransport | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], None] = time.sleep,
        say: Callable[[str], None] = write_error,
        timeout: float = TIMEOUT_SECONDS,
        patience_seconds: float = LONGEST_WAIT_SECONDS,
    ) -> None:
        self._patience_seconds = patience_seconds
        self.server = checked_address(server)
        self._has_token = token is not None
        self._now = now
        self._sleep = sleep
        self._say = say
        self._http = open_http(
            base_url=self.server, timeout=timeout, transport=transport, headers=headers_of(token)
        )

    def close(self) -> None:
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        media_type: str = "application/json",
    ) -> httpx.Response:
        """Send a request; wait and repeat it while the server asks to (Retry-After).

        Raises:
            ServerUnreachable: no answer, one above MAX_ANSWER_BYTES, a wrong token, or the server
            asks for more than ``patience_seconds`` in total.
        """
        headers = {"Content-Type": media_type} if content is not None else {}
        waited = 0.0
        while True:
            try:
                send = partial(self._send, method, path, content, headers)
                response = within(WHOLE_SECONDS, send)
            except TimeoutError:
                raise ServerUnreachable(
                    f"{self.server}{path} is not answered whole within {WHOLE_SECONDS:.0f} s"
                ) from None
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                through = proxy_of(self.server)
                way = f", through the proxy of {through}" if through else ""
                raise ServerUnreachable(
                    f"{self.server} does not answer{way}: {words(error)}"
                ) from error
            if response.status_code == 401:
                raise ServerUnreachable(self._no_access())
            seconds = retry_after_seconds(response, self._now())
            if seconds is None or response.status_code not in ASKS_TO_WAIT:
                return response
            waited = self.wait(seconds, waited)

    def _send(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> httpx.Response:
        parts, size = [], 0
        with self._http.stream(method, path, content=content, headers=headers) as response:
            for part in response.iter_bytes():
                size += len(part)
                if size > MAX_ANSWER_BYTES:
                    raise ServerUnreachable(
                        f"{self.server}{path} answers with more than {MAX_ANSWER_BYTES >> 20} MiB"
                    )
                parts.append(part)
        # Values are read as bytes, because they may be in any encoding.
        every = response.headers.raw
        kept = [(name, value) for name, value in every if name.lower() not in TRANSFER_HEADERS]
        body = b"".join(parts)
        return httpx.Response(response.status_code, headers=kept, content=body)

    def wait(self, seconds: float, waited: float) -> float:
        """Wait as long as the server asks; returns the seconds of all waits, with those ``waited``
        before. ServerUnreachable where they would exceed ``patience_seconds``."""
        seconds = max(seconds, LEAST_WAIT_SECONDS)
        if waited + seconds > self._patience_seconds:
            raise ServerUnreachable(
                f"{self.server} limits requests and asks to wait for {seconds:.0f} s, after "
                f"{waited:.0f} s of at most {self._patience_seconds:.0f} s; try later"
            )
        self._say(
            f"{self.server} limits requests: waiting {seconds:.0f} s (Ctrl-C stops; results "
            "stay in the outbox)"
        )
        self._sleep(seconds)
        return waited + seconds

    def content(self, path: str) -> bytes:
        """The bytes at a path. Raises ServerUnreachable where the server answers with none."""
        response = self.request("GET", path)
        if not response.is_success:
            raise ServerUnreachable(f"{self.server}{path} answered {response.status_code}")
        return response.content

    def _no_access(self) -> str:
        if self._has_token:
            return f"{self.server} does not accept the read token in {TOKEN_SETTING}"
        return f"{self.server} is private: set {TOKEN_SETTING} to its read token"


def retry_after_seconds(response: httpx.Response, now: datetime) -> float | None:
    """Seconds that a server asks to wait (RFC 9110, section 10.2.3), or None."""
    value = response.headers.get("Retry-After", "").strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return float(value[:9])
    moment = http_date(value)
    return None if moment is None else max(0.0, (moment - now).total_seconds())


def http_date(text: str) -> datetime | None:
    """The moment of an HTTP date; None for another text."""
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
