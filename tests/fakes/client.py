"""Post results to a server under test."""

from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol.result import Result

from . import results

JSON = {"Content-Type": "application/json"}


class Poster:
    """Calls ``POST /api/v1/results`` and ``/keys``; ``poster(result)`` returns the result's id."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    def enroll(self, key: Ed25519PrivateKey | None = None, name: str | None = None) -> None:
        answer = self.http.post("/api/v1/keys", content=results.enrollment(key, name), headers=JSON)
        assert answer.status_code in (200, 201), answer.text

    def raw(self, body: bytes) -> httpx.Response:
        return self.http.post("/api/v1/results", content=body, headers=JSON)

    def __call__(self, result: Result, key: Ed25519PrivateKey | None = None) -> str:
        answer = self.raw(results.sealed(result, key))
        assert answer.status_code == 201, answer.text
        identity: str = answer.json()["id"]
        return identity

    def made(self, **overrides: Any) -> str:
        """Post a result made with these overrides."""
        return self(results.make_result(**overrides), overrides.get("key"))
