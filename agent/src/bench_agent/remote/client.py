"""The HTTP client of a server: enroll the key, post envelopes, send acts, read documents."""

import base64
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import ValidationError

from bench_protocol.base import strict_json
from bench_protocol.base.errors import ProtocolError, first_invalid_field
from bench_protocol.base.units import plain_text, utc_text
from bench_protocol.payload import acts, statement
from bench_protocol.payload.acts import Act, ChallengeRequest, Revocation, Rotation
from bench_protocol.payload.result import Challenge
from bench_protocol.signing import envelope, keys

from ..base.errors import ServerUnreachable
from ..base.home import Home
from ..base.terminal import write_error
from . import batch
from .batch import LineAnswer
from .checkpoint_memory import CheckpointMemory
from .connection import MAX_ANSWER_BYTES, TRANSIENT, Connection, retry_after_seconds
from .outbox import problem_text

# A rate-limited line of an answer does not name a time to wait.
LINE_WAIT_SECONDS = 10.0
# The server answers "pending" if a result is not on its board by then.
BOARD_WAIT_SECONDS = 5


class ServerRefused(Exception):
    def __init__(self, server: str, problem: dict[str, Any]) -> None:
        super().__init__(f"{server} refused: {problem_text(problem)}")
        self.problem = problem


@dataclass(frozen=True)
class IssuedChallenge:
    """A server's nonce, and how long it is valid."""

    challenge: Challenge
    fresh_seconds: float


class Client:
    """One server, one key; without a key it can only read.

    With a ``home`` the client remembers the log's last checkpoint: it accepts no answer without a
    valid receipt, and none from a log that contradicts an earlier state.

    Its methods raise ServerUnreachable without a usable answer, ServerRefused for a problem
    document, LogContradiction for a log that contradicts itself, and InvalidField for a value that
    cannot be sent.
    """

    def __init__(
        self,
        server: str,
        key: Ed25519PrivateKey | None,
        home: Home | None = None,
        *,
        token: str | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], None] = time.sleep,
        say: Callable[[str], None] = write_error,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._connection = Connection(
            server, token, transport=transport, now=now, sleep=sleep, say=say
        )
        self.server = self._connection.server
        self._own_key = key
        self._now = now
        self.checkpoints = (
            CheckpointMemory(home, self.server, self.fetch, now, say) if home else None
        )

    def close(self) -> None:
        self._connection.close()

    @property
    def _key_id(self) -> str:
        return keys.key_id(self._key.public_key())

    @property
    def _key(self) -> Ed25519PrivateKey:
        if self._own_key is None:
            raise ValueError("a client without a key signs nothing")
        return self._own_key

    def knock(self) -> None:
        self.fetch("/healthz")

    def enroll(self, invite: str | None = None) -> dict[str, Any]:
        """Make this machine's key known to the server. Doing it again changes nothing."""
        server_state = self.checkpoints.meet() if self.checkpoints else None
        event = statement.enroll_event(
            self._key.public_key(),
            utc_text(self._now()),
            server_origin=server_state.origin if server_state else None,
            license=server_state.license if server_state else None,
        )
        payload = statement.key_event_payload(event)
        return self._post_event(payload, self._key, invite=invite)

    def rotate(self, new: Ed25519PrivateKey) -> dict[str, Any]:
        """Replace this key with a new one; both sign."""
        event = self._made(
            Rotation,
            event="rotate",
            public_key=base64.b64encode(keys.spki(new.public_key())).decode(),
            supersedes=self._key_id,
            at=self._at,
        )
        return self._post_event(event, self._key, new)

    def revoke(self, key_id: str, reason: str, since: int | None) -> dict[str, Any]:
        """Revoke one of this owner's keys. ``since``: results from this log index on no longer
        count."""
        event = self._made(
            Revocation,
            event="revoke",
            key_id=key_id,
            reason=reason,
            compromised_since_log_index=since,
            at=self._at,
        )
        return self._post_event(event, self._key)

    def act(self, kind: acts.OwnAct, result: str | None = None) -> dict[str, Any]:
        """List, export, hide, show or withdraw this key's results."""
        identity, at = secrets.token_hex(16), self._at
        act = self._made(Act, act=kind, id=identity, key_id=self._key_id, result=result, at=at)
        sealed = envelope.seal(acts.ACT_PAYLOAD_TYPE, act, self._key)
        answer = self._post_sealed("/api/v1/acts", sealed)
        if answer.get("act") != kind:
            raise self._no_server()
        if self.checkpoints and kind not in acts.READING_ACTS:
            if kind != "withdraw" and "receipt" in answer and answer["receipt"] is None:
                return answer  # it changed nothing, so it is not logged
            self._require_receipt(answer)
            self.checkpoints.check([(sealed, answer["receipt"])])
        return answer

    def challenge(self, run_id: str) -> IssuedChallenge:
        """Ask for a nonce that binds a run to this moment. A repeated attempt gets the same one."""
        identity = secrets.token_hex(16)
        asked = self._made(ChallengeRequest, id=identity, run_id=run_id, key_id=self._key_id)
        sealed = envelope.seal(acts.CHALLENGE_REQUEST_PAYLOAD_TYPE, asked, self._key)
        answer = self._answer("POST", "/api/v1/challenges", content=sealed)
        try:
            named = {name: answer[name] for name in Challenge.model_fields}
            issued, expires = (
                datetime.fromisoformat(answer[name]) for name in ("issued_at", "expires_at")
            )
            return IssuedChallenge(Challenge(**named), (expires - issued).total_seconds())
        except (KeyError, TypeError, ValueError) as error:
            raise ServerUnreachable(f"{self.server} gave no challenge: {error}") from error

    def license(self) -> str:
        """SPDX identifier of the licence under which the server publishes."""
        try:
            # It is printed where a person is asked to agree.
            named = strict_json.loads(self.fetch("/api/v1/log"))["license"]
            return plain_text(str(named), limit=64)
        except (ProtocolError, KeyError, TypeError, ValueError) as error:
            raise self._no_server() from error

    def read(self, path: str) -> dict[str, Any]:
        return self._answer("GET", path)

    def fetch(self, path: str) -> bytes:
        return self._connection.content(path)

    def post_results(self, envelopes: Sequence[bytes]) -> list[LineAnswer]:
        """Post envelopes in one request, or in several if the body is too large for the server."""
        content = batch.body(envelopes)
        response = self._connection.request("POST", "/api/v1/results", content, batch.NDJSON)
        if response.status_code == 413 and len(envelopes) > 1:
            half = len(envelopes) // 2
            return [*self.post_results(envelopes[:half]), *self.post_results(envelopes[half:])]
        if response.status_code == 413:
            detail = f"{self.server} takes no body of {len(content)} bytes"
            return [LineAnswer(413, {"detail": detail})]
        if not response.is_success:
            raise ServerUnreachable(f"{self.server} answered {response.status_code}; try later")
        wait_seconds = retry_after_seconds(response, self._now()) or LINE_WAIT_SECONDS
        try:
            return batch.read_answers(response.content, len(envelopes), wait_seconds)
        except (ProtocolError, LookupError, TypeError) as error:
            raise self._no_server() from error

    def wait(self, seconds: float, waited: float) -> float:
        """Wait before another post; see :meth:`.connection.Connection.wait`."""
        return self._connection.wait(seconds, waited)

    def result_on_board(self, result_id: str) -> dict[str, Any] | None:
        """A result once boards have it; None if that takes more than BOARD_WAIT_SECONDS."""
        answer = self.read(f"/api/v1/results/{result_id}?wait={BOARD_WAIT_SECONDS}")
        if not isinstance(answer.get("status"), str):
            raise self._no_server()
        return None if answer["status"] == "pending" else answer

    @property
    def _at(self) -> str:
        return utc_text(self._now())

    def _made(
        self, kind: type[Rotation | Revocation | Act | ChallengeRequest], **fields: Any
    ) -> bytes:
        """The payload of a statement for this server."""
        if self.checkpoints is None:
            raise ValueError("a client without a home signs nothing for a server")
        origin = self.checkpoints.meet().origin
        try:
            return acts.payload(kind(server_origin=origin, **fields))
        except ValidationError as error:
            raise first_invalid_field(error) from None

    def _post_event(
        self, payload: bytes, *signers: Ed25519PrivateKey, **beside: str | None
    ) -> dict[str, Any]:
        sealed = envelope.seal(statement.KEY_EVENT_PAYLOAD_TYPE, payload, *signers)
        answer = self._post_sealed("/api/v1/keys", sealed, **beside)
        if self.checkpoints:
            self._require_receipt(answer)
        return answer

    def _require_receipt(self, answer: dict[str, Any]) -> None:
        """What was logged has a receipt: without one, another program said that it is done."""
        if not answer.get("receipt"):
            raise self._no_server()

    def _no_server(self) -> ServerUnreachable:
        return ServerUnreachable(f"{self.server} is not a Trainmark server")

    def _post_sealed(self, path: str, sealed: bytes, **beside: str | None) -> dict[str, Any]:
        """Post an envelope, its bytes as they are, with members that nobody signs."""
        members = [b'"envelope":%s' % sealed]
        members += [
            b'"%s":%s' % (name.encode(), strict_json.dumps(value)) for name, value in beside.items()
        ]
        return self._answer("POST", path, content=b"{%s}" % b",".join(members))

    def _answer(self, method: str, path: str, content: bytes | None = None) -> dict[str, Any]:
        response = self._connection.request(method, path, content)
        if response.status_code in TRANSIENT or response.status_code >= 500:
            raise ServerUnreachable(f"{self.server} answered {response.status_code}; try later")
        try:
            document = strict_json.loads(response.content, max_bytes=MAX_ANSWER_BYTES)
        except ProtocolError:
            document = None
        if not isinstance(document, dict):
            raise self._no_server()
        if response.is_success:
            return document
        if not batch.is_problem(document):
            raise ServerUnreachable(f"{self.server} answered {response.status_code}; try later")
        raise ServerRefused(self.server, document)
