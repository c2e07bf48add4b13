"""Post beats: one hash at a time, on a connection of its own, for at most half a second."""

import logging
from contextlib import suppress
from dataclasses import dataclass, field

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bench_protocol.base import strict_json
from bench_protocol.payload import beats
from bench_protocol.payload.beats import LATEST_NS, BeatRequest
from bench_protocol.payload.evidence import Beat, beacon_of
from bench_protocol.payload.result import Challenge

from .connection import headers_of, trusted

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class BeatServer:
    """The server of a challenge, as beats need it. ``challenge_key``: verifies its signed times."""

    address: str
    challenge: Challenge
    key_id: str
    challenge_key: Ed25519PublicKey
    token: str | None = field(default=None, repr=False)


class BeatPost:
    """Posts heads from one thread. Nothing raises: a fault becomes the beat's ``problem``."""

    def __init__(self, server: BeatServer) -> None:
        self._server = server
        self._http = httpx.Client(
            base_url=server.address,
            timeout=LATEST_NS / 1e9,
            headers=headers_of(server.token),
            verify=trusted(),
        )

    def connect(self) -> None:
        """Open the connection before timing begins, so that the first beat is one round trip."""
        with suppress(Exception):
            self._http.get("/healthz")

    def close(self) -> None:
        self._http.close()

    def body(self, head: str) -> bytes:
        """The request's body."""
        challenge, key_id = self._server.challenge, self._server.key_id
        asked = BeatRequest(challenge=challenge.id, nonce=challenge.nonce, key_id=key_id, head=head)
        return strict_json.dumps(asked.model_dump())

    def send(self, body: bytes) -> httpx.Response | str:
        """The server's answer, or the problem: ``late`` or ``unreachable``."""
        try:
            return self._http.post(
                "/api/v1/beats", content=body, headers={"Content-Type": "application/json"}
            )
        except httpx.TimeoutException:
            return "late"
        except Exception as error:  # a beat must not end a measurement
            LOG.info("no beat: %s: %s", type(error).__name__, error)
            return "unreachable"

    def read(self, answer: httpx.Response | str, posted: Beat, answered_ns: int) -> Beat:
        """The beat with its signed time, or with its problem: also ``refused`` and ``bad_answer``.

        Args:
            posted: without an answer.
            answered_ns: when the answer came, on the clock of ``sent_ns``.
        """
        if isinstance(answer, str):
            return posted.model_copy(update={"problem": answer})
        if answered_ns - posted.sent_ns > LATEST_NS:
            return posted.model_copy(update={"problem": "late"})
        if not answer.is_success:
            return posted.model_copy(update={"problem": "refused"})
        try:
            said = strict_json.loads(answer.content)
            answered = Beat(
                **posted.model_dump(
                    exclude={"answered_ns", "beacon", "at", "signature", "problem"}
                ),
                answered_ns=answered_ns,
                beacon=beacon_of(said["signature"]),
                at=said["at"],
                signature=said["signature"],
            )
        except (ValueError, LookupError, TypeError):  # ProtocolError and ValidationError too
            return posted.model_copy(update={"problem": "bad_answer"})
        server = self._server
        if not beats.is_signed(answered, server.challenge, server.key_id, server.challenge_key):
            return posted.model_copy(update={"problem": "bad_answer"})
        return answered
