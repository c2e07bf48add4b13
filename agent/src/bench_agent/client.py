"""Talks to a server: enrolls the key, posts what waits in the outbox."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol import envelope, statement, strict_json

from . import __version__
from .outbox import Entry, Outbox
from .problems import UsageProblem

TIMEOUT_SECONDS = 20.0
# Worth trying again later; every other 4xx means that this envelope will never be taken.
TRANSIENT = {408, 425, 429}


class ServerUnreachable(Exception):
    """No usable answer from the server; results stay in the outbox."""


class ServerRefused(Exception):
    """The server answered with a problem document."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        detail = problem.get("detail") or problem.get("title") or f"HTTP {status}"
        mend = problem.get("mend")
        super().__init__(f"{detail} ({mend})" if mend else str(detail))
        self.status = status
        self.problem = problem


@dataclass(frozen=True)
class Delivery:
    """What became of one envelope."""

    entry: Entry
    state: Literal["sent", "refused"]
    answer: dict[str, Any]


def checked_address(server: str) -> str:
    """A server's address without a slash at its end.

    Raises:
        UsageProblem: it is not an address of the web.
    """
    try:
        parts = urlsplit(server)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise UsageProblem(
            f"{server!r} is no server address; write http://HOST:PORT or https://..."
        )
    return server.rstrip("/")


def utc_text(moment: datetime) -> str:
    """The wire's form of a time: RFC 3339, UTC, microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Client:
    """One server, one key."""

    def __init__(
        self,
        server: str,
        key: Ed25519PrivateKey,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.server = checked_address(server)
        self._key = key
        self._now = now
        self._http = httpx.Client(
            base_url=self.server,
            timeout=TIMEOUT_SECONDS,
            transport=transport,
            headers={"User-Agent": f"bench-agent/{__version__}"},
        )

    def close(self) -> None:
        self._http.close()

    def knock(self) -> None:
        """See whether the server answers.

        Raises:
            ServerUnreachable: it does not.
        """
        try:
            self._http.get("/healthz").raise_for_status()
        except httpx.HTTPError as error:
            raise ServerUnreachable(f"{self.server} does not answer: {error}") from error

    def enroll(
        self, machine_hash: str | None = None, display_name: str | None = None
    ) -> dict[str, Any]:
        """Make this machine's key known to the server. Doing it again changes nothing.

        Raises:
            ServerUnreachable, ServerRefused: see there.
        """
        event = statement.enroll_event(self._key.public_key(), utc_text(self._now()), machine_hash)
        payload = statement.key_event_payload(event)
        sealed = envelope.seal(statement.KEY_EVENT_PAYLOAD_TYPE, payload, self._key)
        return self._answer(
            "POST",
            "/api/v1/keys",
            content=b'{"envelope":%s,"display_name":%s,"invite":null}'
            % (sealed, strict_json.dumps(display_name)),
        )

    def submit(self, outbox: Outbox, machine_hash: str | None = None) -> Iterator[Delivery]:
        """Post every waiting envelope, enrolling the key if the server does not know it yet.

        An envelope leaves ``pending/`` only after the server's answer, so stopping anywhere and
        calling again sends each one until it was answered; the server takes each once.

        Raises:
            ServerUnreachable: the rest stays in the outbox.
        """
        for entry in list(outbox.pending()):
            try:
                answer = self._post_result(entry.raw, machine_hash)
            except FileNotFoundError:
                continue  # another agent was faster
            except ServerRefused as refusal:
                moved = outbox.mark_refused(entry, refusal.problem)
                yield Delivery(moved, "refused", refusal.problem)
            else:
                yield Delivery(outbox.mark_sent(entry, answer), "sent", answer)

    def _post_result(self, raw: bytes, machine_hash: str | None) -> dict[str, Any]:
        try:
            return self._answer("POST", "/api/v1/results", content=raw)
        except ServerRefused as refusal:
            if refusal.problem.get("code") != "unknown_key":
                raise
        self.enroll(machine_hash)
        return self._answer("POST", "/api/v1/results", content=raw)

    def _answer(self, method: str, path: str, *, content: bytes | None = None) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"} if content is not None else {}
        try:
            response = self._http.request(method, path, content=content, headers=headers)
        except httpx.HTTPError as error:
            raise ServerUnreachable(f"{self.server} does not answer: {error}") from error
        if response.status_code in TRANSIENT or response.status_code >= 500:
            raise ServerUnreachable(f"{self.server} answered {response.status_code}; try later")
        try:
            document = response.json()
        except ValueError as error:
            raise ServerUnreachable(f"{self.server} is not a Trainmark server") from error
        if not isinstance(document, dict):
            raise ServerUnreachable(f"{self.server} is not a Trainmark server")
        if response.is_success:
            return document
        if "code" not in document:
            raise ServerUnreachable(f"{self.server} answered {response.status_code}; try later")
        raise ServerRefused(response.status_code, document)
