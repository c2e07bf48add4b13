"""Post signed acts, rotations and revocations to a server under test."""

import base64
import itertools
import json
from datetime import datetime
from typing import Any

import httpx

from bench_protocol.payload import acts, statement
from bench_protocol.payload.acts import Act, Revocation, Rotation
from bench_protocol.signing import envelope, keys

from . import results
from .authority import ORIGIN
from .client import Poster

NOW = datetime.fromisoformat("2026-11-21T04:00:30+00:00")
_numbers = itertools.count()


def act(post: Poster, kind: str, seed: int = 1, at: datetime = NOW, **about: Any) -> httpx.Response:
    key = results.private_key(seed)
    said = Act(
        act=kind,  # type: ignore[arg-type]
        id=f"{next(_numbers):032x}",
        key_id=results.key_id(key),
        server_origin=about.pop("server_origin", ORIGIN),
        at=results.utc_text(at),
        **about,
    )
    sealed = json.loads(envelope.seal(acts.ACT_PAYLOAD_TYPE, acts.payload(said), key))
    return post.http.post("/api/v1/acts", json={"envelope": sealed})


def revoked(post: Poster, signer: int, target: int, since: int | None = None) -> httpx.Response:
    event = Revocation(
        event="revoke",
        key_id=results.key_id(results.private_key(target)),
        reason="lost",
        compromised_since_log_index=since,
        server_origin=ORIGIN,
        at=results.AT,
    )
    return _key_event(post, event, signer)


def rotated(post: Poster, old: int, new: int) -> httpx.Response:
    public = base64.b64encode(keys.spki(results.private_key(new).public_key())).decode()
    event = Rotation(
        event="rotate",
        public_key=public,
        supersedes=results.key_id(results.private_key(old)),
        server_origin=ORIGIN,
        at=results.AT,
    )
    return _key_event(post, event, old, new)


def _key_event(post: Poster, event: Revocation | Rotation, *signers: int) -> httpx.Response:
    signing = [results.private_key(seed) for seed in signers]
    sealed = envelope.seal(statement.KEY_EVENT_PAYLOAD_TYPE, acts.payload(event), *signing)
    return post.http.post("/api/v1/keys", json={"envelope": json.loads(sealed)})
