"""Mutated, replayed, re-signed and re-challenged envelopes against a real server.

Every envelope is made of an honest one that the server has, or of one for a challenge that it gave.
None may count, and no answer may be a 5xx. The same seed makes the same envelopes, but for ids that
the server draws.

What this is not: results of other cells that a key's holder invents and signs. These are new
results, and have trust level 2 (docs/methodology.md, Trust levels).
"""

import base64
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlmodel import func, select
from tests.fakes import results
from tests.fakes.client import JSON, bind
from tests.fakes.live import NO_LIMITS, running_server
from tests.fakes.projected import settled

from bench_protocol.base import strict_json
from bench_protocol.payload import acts, statement
from bench_protocol.payload.acts import Revocation
from bench_protocol.signing import envelope
from bench_server.db import migrate
from bench_server.db.store import Store
from bench_server.db.tables import Measurement
from bench_server.settings import DEFAULT_ORIGIN as ORIGIN

from . import Line

KEYS = [results.private_key(seed) for seed in (1, 2, 3)]
REVOKED, STRANGER = results.private_key(4), results.private_key(9)
CELLS = ("mnist-cnn", "mnist-dense", "fashion-mlp", "fashion-cnn")
HONEST = 12
TOGETHER = 100
REFUSED = "refused"
# A result that is kept at trust level 1 does not count.
KEPT = {200: "answered with their first receipt", 201: "kept unranked"}
NDJSON = {"Content-Type": "application/x-ndjson"}
# Values of JSON that a reader may stumble over.
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**53, 2**63, 10**40, 1e308, -0.0, "", "a" * 3000, "\u202e\u0000", "NaN",
    [], {}, [[]], {"": None}, [1] * 300,
)  # fmt: skip


@dataclass(frozen=True)
class Honest:
    """An accepted envelope, its payload, and the key that signed it."""

    raw: bytes
    payload: bytes
    key: Ed25519PrivateKey

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.raw)
        return document

    @property
    def statement(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.payload)
        return document


Mutate = Callable[[Honest, random.Random], bytes]


def mutations(folder: Path, count: int, seed: int = 20261124) -> Iterator[Line]:
    """Send ``count`` envelopes, and look at what counts then."""
    database = f"sqlite:///{folder / 'mutations.db'}"
    store = Store(database)
    migrate.migrate(store.engine)
    with (
        running_server(database, folder, **NO_LIMITS) as address,
        httpx.Client(base_url=address, timeout=60) as http,
    ):
        honest = list(_honest(store, http))
        settled(address)
        before = _counting(store), _boards(http)
        outcomes = _send(http, honest, count, random.Random(seed))
        settled(address)
        after = _counting(store), _boards(http)
    store.close()
    whole = sum(outcomes.values())
    expected = (REFUSED, *KEPT.values())
    shown = (*expected, *(outcomes.keys() - {*expected}))
    words = ", ".join(f"{outcomes[what]:,} {what}" for what in shown)
    yield Line(
        f"{whole:,} envelopes, mutated, replayed, re-signed, re-challenged",
        words if outcomes.keys() - {*expected} else f"{words}, no 5xx",
        whole == count and outcomes.keys() <= {*expected},
    )
    yield Line(
        "the same: what counts",
        f"{before[0]} ranked results and every board as before: {before == after}",
        before == after and before[0] == len(honest),
    )


def _honest(store: Store, http: httpx.Client) -> Iterator[Honest]:
    """Results that count, of three keys; a fourth key is revoked."""
    for key in (*KEYS, REVOKED):
        http.post("/api/v1/keys", content=results.enrollment(key), headers=JSON).raise_for_status()
    for number in range(HONEST):
        key = KEYS[number % len(KEYS)]
        made = results.make_result(key=key, cell=results.make_cell(CELLS[number % len(CELLS)]))
        bound = bind(store, made, datetime.now(UTC), ORIGIN)
        raw = results.sealed(bound, key)
        http.post("/api/v1/results", content=raw, headers=JSON).raise_for_status()
        yield Honest(raw, statement.result_payload(bound), key)
    revocation = Revocation(
        event="revoke", key_id=results.key_id(REVOKED), reason="stolen",
        compromised_since_log_index=0, server_origin=ORIGIN, at=results.AT,
    )  # fmt: skip
    sealed = envelope.seal(statement.KEY_EVENT_PAYLOAD_TYPE, acts.payload(revocation), REVOKED)
    body = b'{"envelope":%s}' % sealed
    http.post("/api/v1/keys", content=body, headers=JSON).raise_for_status()


def _send(
    http: httpx.Client, honest: list[Honest], count: int, chance: random.Random
) -> Counter[str]:
    """Send envelopes of every kind in turn, many together where a line can hold them."""
    outcomes: Counter[str] = Counter()
    lines: list[bytes] = []
    rechallenged = partial(_rechallenged, http)
    kinds = (*MUTATIONS, rechallenged)
    for number in range(count):
        mutate = kinds[number % len(kinds)]
        raw = mutate(chance.choice(honest), chance)
        one_line = bool(raw.strip()) and b"\n" not in raw and b"\r" not in raw
        if one_line and number % 7 and mutate is not rechallenged:
            lines.append(raw)
        else:
            path = "/api/v1/keys" if number % 35 == 0 else "/api/v1/results"
            outcomes[_outcome(http.post(path, content=raw, headers=JSON).status_code)] += 1
        if len(lines) == TOGETHER or (number == count - 1 and lines):
            outcomes += _together(http, lines)
            lines = []
    return outcomes


def _together(http: httpx.Client, lines: list[bytes]) -> Counter[str]:
    answer = http.post("/api/v1/results", content=b"\n".join(lines), headers=NDJSON)
    if answer.status_code != 207:
        return Counter({_outcome(answer.status_code): len(lines)})
    return Counter(_outcome(json.loads(line)["status"]) for line in answer.text.splitlines())


def _outcome(status: int) -> str:
    refused = 400 <= status < 500
    return REFUSED if refused else KEPT.get(status, f"answered HTTP {status}")


def _counting(store: Store) -> int:
    """How many results count on boards."""
    with store.reading() as session:
        return session.exec(
            select(func.count()).select_from(Measurement).where(Measurement.rankable)
        ).one()


def _boards(http: httpx.Client) -> list[tuple[Any, ...]]:
    """Each figure and its trust level on every board."""
    boards = []
    for workload in CELLS:
        query = f"/api/v1/leaderboard?workload={workload}&batch_size=any&precision=any&limit=500"
        for row in http.get(f"{query}&group=setup").raise_for_status().json()["rows"]:
            boards.append((workload, row["samples_per_second"], row["trust_level"], row["runs"]))
    return boards


# -- kinds of mutation: each makes another envelope of an honest one ------------------------------


def flipped_payload(honest: Honest, chance: random.Random) -> bytes:
    """A byte of what was signed is another one."""
    payload = bytearray(honest.payload)
    payload[chance.randrange(len(payload))] ^= chance.randrange(1, 256)
    return _with(honest, payload=base64.b64encode(payload).decode())


def flipped_signature(honest: Honest, chance: random.Random) -> bytes:
    document = honest.document
    signature = bytearray(base64.b64decode(document["signatures"][0]["sig"]))
    signature[chance.randrange(len(signature))] ^= 1 << chance.randrange(8)
    document["signatures"][0]["sig"] = base64.b64encode(signature).decode()
    return json.dumps(document).encode()


def other_key_id(honest: Honest, chance: random.Random) -> bytes:
    """The envelope says that another key signed it."""
    document = honest.document
    named = document["signatures"][0]["keyid"]
    others = [results.key_id(key) for key in (*KEYS, REVOKED, STRANGER) if key is not honest.key]
    odd = (named.upper(), named[:-1], f"{named} ", "0" * 64, "", None, 7)
    document["signatures"][0]["keyid"] = chance.choice((*others, *odd))
    return json.dumps(document).encode()


def damaged_text(honest: Honest, chance: random.Random) -> bytes:
    """Bytes of the envelope are lost, doubled or replaced."""
    raw = bytearray(honest.raw)
    at = chance.randrange(len(raw))
    length = chance.choice((1, 2, 16, 500))
    there = bytes(raw[at : at + length])
    junk = bytes(chance.randrange(256) for _ in range(length))
    raw[at : at + length] = chance.choice((b"", there + there, junk, b'"', b"{" * length))
    return bytes(raw)


def odd_envelope(honest: Honest, chance: random.Random) -> bytes:
    """A member of the envelope has another value, is missing, or is there twice."""
    document = honest.document
    name = chance.choice(("payload", "payloadType", "signatures"))
    how = chance.randrange(4)
    if how == 0:
        del document[name]
    elif how == 1:
        document[name] = chance.choice(ODD)
    elif how == 2:
        document["signatures"] *= chance.choice((0, 2, 50))
    else:
        value = json.dumps(document[name])
        return json.dumps(document)[:-1].encode() + f',"{name}":{value}}}'.encode()
    return json.dumps(document).encode()


def replayed(honest: Honest, chance: random.Random) -> bytes:
    """The same envelope, as it was or written in another way."""
    document = honest.document
    if chance.random() < 0.5:
        return honest.raw
    items = list(document.items())
    chance.shuffle(items)
    return json.dumps(dict(items), separators=(" , ", " : ")).encode()


def signed_by_another(honest: Honest, chance: random.Random) -> bytes:
    """Another key signs the same bytes, or bytes that name it as their author."""
    key = chance.choice([one for one in (*KEYS, REVOKED, STRANGER) if one is not honest.key])
    document = honest.statement
    if chance.random() < 0.5:
        document["predicate"]["agent"]["key_id"] = results.key_id(key)
    return _signed(document, key)


def signed_again(honest: Honest, chance: random.Random) -> bytes:
    """Its own key signs other figures for the same repeat."""
    document = honest.statement
    predicate = document["predicate"]
    target, name = chance.choice(list(_places(predicate, without=("cell", "challenge", "repeat"))))
    value = target[name]
    if isinstance(value, int | float) and not isinstance(value, bool) and chance.random() < 0.5:
        target[name] = chance.choice((value * 2, value // 2, value + 1, -value))
    else:
        target[name] = deepcopy(chance.choice(ODD))
    return _signed(document, honest.key)


def changed_challenge(honest: Honest, chance: random.Random) -> bytes:
    """Its own key signs it for a challenge that the server never gave it."""
    document = honest.statement
    challenge = document["predicate"]["challenge"]
    other = f"{chance.getrandbits(256):064x}"
    challenge.update(chance.choice(({"id": other[:32]}, {"nonce": other}, {"server_origin": "x"})))
    document["predicate"]["run_id"] = f"{chance.getrandbits(128):032x}"
    return _signed(document, honest.key)


def other_kind(honest: Honest, chance: random.Random) -> bytes:
    """A right signature over a payload of another type."""
    types = (
        statement.KEY_EVENT_PAYLOAD_TYPE, acts.CHALLENGE_PAYLOAD_TYPE, "application/json", "", "a/b"
    )  # fmt: skip
    return envelope.seal(chance.choice(types), honest.payload, honest.key)


MUTATIONS: tuple[Mutate, ...] = (
    flipped_payload,
    flipped_signature,
    other_key_id,
    damaged_text,
    odd_envelope,
    replayed,
    signed_by_another,
    signed_again,
    changed_challenge,
    other_kind,
)


def _rechallenged(http: httpx.Client, honest: Honest, chance: random.Random) -> bytes:
    """Its own key signs it for a fresh challenge, which is younger than the run it claims."""
    body = results.challenge_request(honest.key, http.get("/api/v1/log").json()["origin"])
    given = http.post("/api/v1/challenges", content=body, headers=JSON).raise_for_status().json()
    document = honest.statement
    names = ("id", "nonce", "server_origin")
    document["predicate"]["challenge"] = {name: given[name] for name in names}
    document["predicate"]["run_id"] = f"{chance.getrandbits(128):032x}"
    return _signed(document, honest.key)


def _places(value: Any, without: tuple[str, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Every member of a document: what holds it, and its name or index there."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, member in list(items):
        if name in without:
            continue
        yield value, name
        if isinstance(member, dict | list):
            yield from _places(member)


def _with(honest: Honest, **members: Any) -> bytes:
    return json.dumps(honest.document | members).encode()


def _signed(document: dict[str, Any], key: Ed25519PrivateKey) -> bytes:
    return envelope.seal(statement.RESULT_PAYLOAD_TYPE, _dumped(document), key)


def _dumped(document: dict[str, Any]) -> bytes:
    try:
        return strict_json.dumps(document)
    except (ValueError, TypeError):
        return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
