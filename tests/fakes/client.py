"""Post results to a server under test."""

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol.payload.result import Challenge, Result
from bench_server.db.store import Store
from bench_server.ingest import challenges
from bench_server.settings import Settings

from . import results
from .authority import AUTHORITY
from .projected import settle
from .seeding import under_nonce

JSON = {"Content-Type": "application/json"}
NO_LIMITS = Settings(
    address_rate="off", key_rate="off", enroll_rate="off", challenge_rate="off", act_rate="off"
)


class Poster:
    """Posts results and keys; ``store``, the server's database, is where challenges are made."""

    def __init__(self, http: httpx.Client, store: Store | None = None) -> None:
        self.http = http
        self._state = getattr(getattr(http, "app", None), "state", None)
        self._store = store

    def enroll(self, key: Ed25519PrivateKey | None = None) -> None:
        answer = self.http.post("/api/v1/keys", content=results.enrollment(key), headers=JSON)
        assert answer.status_code in (200, 201), answer.text

    def ask(self, key: Ed25519PrivateKey | None = None, run_id: str = "a" * 32) -> httpx.Response:
        body = results.challenge_request(key, self._origin, run_id)
        return self.http.post("/api/v1/challenges", content=body, headers=JSON)

    def raw(self, body: bytes) -> httpx.Response:
        return self.http.post("/api/v1/results", content=body, headers=JSON)

    def __call__(self, result: Result, key: Ed25519PrivateKey | None = None) -> str:
        answer = self.raw(results.sealed(result, key))
        assert answer.status_code == 201, answer.text
        identity: str = answer.json()["id"]
        return identity

    def made(self, **overrides: Any) -> str:
        """Post a result bound to a fresh challenge, unless it names one or ``challenge=None``."""
        result = results.make_result(**overrides)
        if "challenge" not in overrides:
            result = self.bound(result)
        return self(result, overrides.get("key"))

    def baseline(self, slug: str) -> None:
        """The operator chooses the baseline; else it needs two owners."""
        self._state.settings = Settings(baseline=slug)

    def settled(self, result: Result, key: Ed25519PrivateKey | None = None) -> str:
        """Post a result bound to a fresh challenge, and recompute it."""
        identity = self(self.bound(result), key)
        settle(self._store or self._state.store)
        return identity

    def bound(self, result: Result) -> Result:
        """The result as if measured under a challenge that was issued when its run began."""
        store = self._store or self._state.store
        now = self._state.clock() if self._state else datetime.now(UTC)
        return bind(store, result, now, self._origin)

    @cached_property
    def _origin(self) -> str:
        origin: str = self.http.get("/api/v1/log").json()["origin"]
        return origin


def bind(store: Store, result: Result, now: datetime, origin: str = AUTHORITY.origin) -> Result:
    """Store a challenge, and bind a result that is posted now to it, with clocks that agree."""
    clocks = result.clocks
    took = timedelta(microseconds=clocks.signed_ns / 1e3)
    challenge = Challenge(
        id=secrets.token_hex(16), nonce=secrets.token_hex(32), server_origin=origin
    )
    issued = {
        "id": challenge.id,
        "nonce": challenge.nonce,
        "key_id": result.agent.key_id,
        "run_id": result.run_id,
        "issued_at": now - took,
        "expires_at": now + timedelta(hours=24),
    }
    with store.writing() as session:
        challenges.issue(session.connection(), issued)
    signed = datetime.fromisoformat(clocks.run_started) + took
    agreeing = clocks.model_copy(update={"signed": results.utc_text(signed)})
    bound = {"challenge": challenge, "nonce": None, "clocks": agreeing}
    return under_nonce(result.model_copy(update=bound))


def get(http: Any, path: str) -> Any:
    answer = http.get(f"/api/v1{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def pages(http: Any, path: str) -> Iterator[Any]:
    cursor = ""
    while cursor is not None:
        yield (page := get(http, f"{path}&cursor={cursor}"))
        cursor = page["next_cursor"]
