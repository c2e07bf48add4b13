"""Mutated requests over raw sockets against a real server, on every route of it.

Each is made of an honest request: another method, target, query, header, cookie, content type,
framing or body, or damaged bytes. Everything that an honest request would change is done before,
so none may change the log or a board. No answer is a 5xx without a stated code, every refusal is a
problem document or an error page, and the server's own log stays empty. The same seed makes the
same requests, but for ids that the server draws.
"""

import json
import random
import re
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
from fastapi.routing import APIRoute
from tests.fakes import results
from tests.fakes.client import Poster
from tests.fakes.live import NO_LIMITS, running_server
from tests.fakes.projected import settled
from tests.fakes.said import act

from bench_protocol.payload import acts
from bench_server.db import migrate
from bench_server.db.store import Store
from bench_server.settings import DEFAULT_ORIGIN as ORIGIN
from bench_server.web.routes import ROUTERS

from . import Line, mutations
from .mutations import Honest
from .request_kinds import MUTATIONS, Request, Site, damaged

ROUTES = [
    (method, route.path)
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute)
    for method in sorted(route.methods)
] + [("GET", "/static/{static}")]
# Paths whose parameter "name" is another thing.
NAMES = {"/docs/{name}": "type", "/documents/{name:path}": "document", "/dumps/{name}": "dump"}
DEADLINES = {"BENCH_SERVER_HEADER_SECONDS": "2", "BENCH_SERVER_BODY_SECONDS": "2"}
DUMP = "results-2026-11-27.parquet"
ANSWER_SECONDS = 60
CLIENTS = 8
# Codes of a 503 that are stated in docs/protocol.md.
STATED = ("too_many_bytes", "too_many_exports", "too_many_connections", "database_unavailable")
MEMBERS = {"type", "title", "status", "detail", "code", "field", "hint"}


class Answer(NamedTuple):
    """``status``: 0 where the server closed the connection without an answer."""

    status: int
    kind: str = ""
    body: bytes = b""


@dataclass
class Seen:
    """Counts of the answers; ``faults`` has an example of each kind."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reached: set[int] = field(default_factory=set)
    faults: dict[str, bytes] = field(default_factory=dict)


def requests(folder: Path, count: int, seed: int = 20261128) -> Iterator[Line]:
    """Send ``count`` requests, and look at what they left behind."""
    database = f"sqlite:///{folder / 'requests.db'}"
    store = Store(database)
    migrate.migrate(store.engine)
    (folder / DUMP).write_bytes(b"PAR1")
    settings = NO_LIMITS | DEADLINES | {"BENCH_SERVER_DUMPS_DIR": str(folder)}
    with (
        running_server(database, folder, **settings) as address,
        httpx.Client(base_url=address, timeout=60) as http,
    ):
        site = _site(store, http)
        settled(address)
        before = _state(http)
        seen = _sent(httpx.URL(address), site, count, seed)
        settled(address)
        after = _state(http)
    store.close()
    words = ", ".join(f"{number:,} {what}" for what, number in sorted(seen.outcomes.items()))
    faults = "; ".join(f"{what}: {raw[:300]!r}" for what, raw in seen.faults.items())
    yield Line(f"{count:,} mutated requests", f"{words}. {faults or 'No fault'}", not seen.faults)
    reached = f"{len(seen.reached)} of {len(ROUTES)} routes"
    missed = [
        " ".join(ROUTES[number]) for number in range(len(ROUTES)) if number not in seen.reached
    ]
    yield Line("the same: routes that succeeded", f"{reached} {missed}", not missed)
    same = f"log and boards as before: {before == after}"
    yield Line("the same: what was changed", same, before == after)
    said = (folder / "server.log").read_text()
    yield Line("the same: the server's own log", said[-2000:] or "empty", not said)


def _site(store: Store, http: httpx.Client) -> Site:
    """Fill a server, and do what the bodies of honest requests ask for."""
    honest: list[Honest] = list(mutations._honest(store, http))
    listed = http.get("/api/v1/results").json()["results"]
    hidden = act(Poster(http), "hide", server_origin=ORIGIN, result=_own(listed))
    hidden.raise_for_status()
    shown = [row["id"] for row in listed if row["id"] != _own(listed)]
    key = mutations.KEYS[0]
    document = http.get("/openapi.json").json()
    queries: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for parameter in operations.get("get", {}).get("parameters", ()):
            if parameter["in"] == "query":
                queries.setdefault(path, []).append(parameter["name"])
    values: dict[str, Sequence[str]] = {
        "result_id": shown,
        "slug": [row["hardware_slug"] for row in listed],
        "machine_id": [row["machine_id"] for row in listed],
        "owner": [acts.first_owner(row["key_id"]) for row in listed],
        "key_id": [results.key_id(one) for one in (*mutations.KEYS, mutations.REVOKED)],
        "form": ["csv", "jsonl", "parquet"],
        "level": ["0"],
        "number": ["000.p/3", "000.p/8"],
        "name": ["mnist-cnn", "fashion-mlp"],
        "type": ["LeaderboardAnswer"],
        "document": ["methodology", "faults"],
        "dump": [DUMP],
        "static": ["site.css", "icon.svg"],
    }
    bodies: dict[str, Sequence[bytes]] = {
        "/api/v1/results": [*(one.raw for one in honest), b"\n".join(one.raw for one in honest)],
        "/api/v1/keys": [results.enrollment(one) for one in mutations.KEYS],
        "/api/v1/challenges": [results.challenge_request(key, ORIGIN)],
        "/api/v1/acts": [hidden.request.content],
    }
    ids = "?ids=" + ",".join(shown[:2])
    compared = ("/api/v1/compare", "/api/v1/compare.{form}", "/compare/card.png")
    history = {"/api/v1/machines/{machine_id}/history": "?workload=mnist-cnn&framework=tensorflow"}
    return Site(values, dict.fromkeys(compared, ids) | history, queries, bodies)


def _own(listed: list[dict[str, Any]]) -> str:
    own = results.key_id(mutations.KEYS[0])
    return next(str(row["id"]) for row in listed if row["key_id"] == own)


def _state(http: httpx.Client) -> tuple[Any, ...]:
    log = http.get("/api/v1/log").json()
    return log["size"], log["checkpoint"], mutations._boards(http)


def _honest(site: Site, number: int, chance: random.Random) -> Request:
    method, path = ROUTES[number % len(ROUTES)]

    def filled(match: re.Match[str]) -> str:
        return quote(chance.choice(site.values[NAMES.get(path, match[1])]), safe="/")

    target = re.sub(r"\{(\w+)(?::path)?\}", filled, path) + site.needed.get(path, "")
    request = Request(method, target.encode(), (("Host", b"x"), ("Connection", b"close")))
    if path not in site.bodies or method != "POST":
        return request
    body = chance.choice(site.bodies[path])
    kind = b"application/x-ndjson" if b"\n" in body else b"application/json"
    return replace(request, body=body).having("Content-Type", kind)


def _other_route(request: Request, site: Site, chance: random.Random) -> Request:
    """The body and headers of one route at another."""
    other = _honest(site, chance.randrange(len(ROUTES)), chance)
    return replace(request, target=other.target, method=chance.choice((request.method, "POST")))


def _sent(address: httpx.URL, site: Site, count: int, seed: int) -> Seen:
    seen = Seen()

    def send(number: int) -> tuple[int, bytes, Answer]:
        chance = random.Random(f"{seed}/{number}")
        request = _honest(site, number, chance)
        # The first request to each route is as it is, to count the routes that are reached.
        if number >= len(ROUTES):
            kinds = (*MUTATIONS, _other_route)
            for mutate in chance.choices(kinds, k=chance.choice((1, 1, 1, 2, 3))):
                request = mutate(request, site, chance)
        raw = request.framed().raw
        if number >= len(ROUTES) and chance.random() < 0.15:
            raw = damaged(raw, chance)
        return number, raw, ask(address, raw)

    with ThreadPoolExecutor(CLIENTS) as pool:
        for number, raw, answer in pool.map(send, range(count)):
            fault = fault_of(raw, answer)
            seen.outcomes[fault or _outcome(answer.status)] += 1
            if fault:
                seen.faults.setdefault(fault, raw)
            if number < len(ROUTES) and 200 <= answer.status < 400:
                seen.reached.add(number)
    return seen


def ask(address: httpx.URL, raw: bytes) -> Answer:
    """Send bytes, and read the first answer."""
    with socket.create_connection((address.host, address.port or 0), ANSWER_SECONDS) as client:
        with suppress(OSError):  # refused before it was read
            client.sendall(raw)
        answer = HTTPResponse(client, method="HEAD" if raw.startswith(b"HEAD ") else "GET")
        try:
            answer.begin()
            return Answer(answer.status, answer.getheader("content-type", ""), answer.read())
        except TimeoutError:
            return Answer(-1)
        except (ConnectionError, HTTPException) as error:
            return Answer(0, type(error).__name__)


def fault_of(raw: bytes, answer: Answer) -> str | None:
    """Say what is wrong with an answer; None if nothing is."""
    status, kind, body = answer
    if status < 100:
        return f"no answer ({kind or 'late'})"
    if status < 400:
        return None
    if kind.startswith("text/html") and b" /api/" not in raw.partition(b"\r\n")[0]:
        return None if status < 500 else f"a page of HTTP {status}"
    if kind != "application/problem+json":
        return f"HTTP {status} as {kind!r}"
    if raw.startswith(b"HEAD "):
        return None if status < 500 else f"HEAD: HTTP {status}"
    document = json.loads(body)
    if document.keys() != MEMBERS or document["status"] != status or not document["hint"]:
        return f"HTTP {status}: a problem with {sorted(document)}"
    if status >= 500 and document["code"] not in STATED:
        return f"HTTP {status} {document['code']}"
    return None


def _outcome(status: int) -> str:
    return "answered" if status < 400 else "refused" if status < 500 else "put off (503)"
