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
from collections.abc import Callable, Iterator, Sequence
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
from .mutations import ODD, Honest

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
BYTES = (b"", b"\x00", b"\xff", b"\xc3\xa9", b" ", b"\t", b"a" * 9000, b"%", b"'\"<>&", b"\r\n x")
VALUES = (
    *("", "0", "-1", "1", "500", "1e9", "9" * 40, "NaN", "inf", "true", "null", "a,b", ",", "*"),
    *("\0", "\ud7ff", "é", "\u202e", "%", "%00", "'", '"', "<b>", "{}", "[]", "../..", "a" * 3000),
    *(
        "any",
        "mnist-cnn",
        "tensorflow",
        "cpu",
        "2026-11-28",
        "2026-11-28T00:00:00Z",
        "WzFd",
        "AAAA",
    ),
)
ACCEPTED = (
    "*/*",
    "text/html",
    "application/json",
    "text/html;q=0",
    "",
    "a/b;q=x",
    "*",
    "text/html" * 400,
)
HEADERS: dict[str, Sequence[str]] = {
    "Accept": ACCEPTED,
    "Accept-Encoding": ("gzip", "gzip;q=0", "br", "*;q=", "gzip" * 900, ";", "gzip;q=nan"),
    "Range": ("bytes=0-1", "bytes=9-2", "bytes=-5", "bytes=0-1,3-4", "x", "bytes=99999999999-"),
    "If-None-Match": ("*", '"a"', "W/", '"a",' * 500, "a"),
    "If-Modified-Since": ("Sat, 28 Nov 2026 00:00:00 GMT", "x", "-1"),
    "If-Range": ('"a"', "x"),
    "Authorization": ("Bearer x", "Basic x", "Basic eDp5", "x", "Bearer", ""),
    "Cookie": ("a=b", "=", ";", "a" * 9000, "a=\x01", 'a="\\"', "session=" + "A" * 200),
    "Cache-Control": ("no-cache", "max-age=x", "only-if-cached"),
    "Origin": ("https://x.example", "null", "x"),
    "Access-Control-Request-Method": ("GET", "POST", "x"),
    "Content-Type": (
        *("application/json", "application/x-ndjson", "text/plain", "", "a", "application/json;"),
        *("multipart/form-data", "multipart/form-data; boundary=x", "application/json; charset=x"),
        *("application/x-www-form-urlencoded", "APPLICATION/JSON", "application/json, text/html"),
    ),
    "Content-Encoding": ("gzip", "identity", "br", "", "gzip, gzip"),
    "Expect": ("100-continue", "x"),
    "Connection": ("keep-alive", "close", "upgrade", "x, close", ""),
    "Upgrade": ("websocket", "h2c", "x"),
    "X-Forwarded-For": ("192.0.2.1", "x", "1, 2, 3", "[::1]:80"),
    "X-Forwarded-Proto": ("https", "x"),
    "X-HTTP-Method-Override": ("DELETE",),
    "Referer": ("https://x.example/", "x"),
    "Host": (
        *("", "x", "x:80", "x:99999", "[::1", "[::1]", "[x]", "[1]", "a b", "x/y", "x@y", "é"),
        "a" * 9000,
    ),
    "Content-Length": ("0", "1", "-1", "+2", "2, 2", "x", "9" * 30, "99999999", "1e3", ""),
    "Transfer-Encoding": ("chunked", "gzip, chunked", "xchunked", "identity", "chunked,x", ""),
}  # fmt: skip
METHODS = (
    *("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"),
    *("get", "G", "", "A" * 3000, "GET GET", "PRI", "M-SEARCH", "G\x00T", "QUERY"),
)


@dataclass(frozen=True)
class Request:
    """A request before it is written; ``version`` ends its first line."""

    method: str
    target: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    body: bytes = b""
    version: bytes = b" HTTP/1.1"

    @property
    def raw(self) -> bytes:
        head = [self.method.encode("utf-8", "replace") + b" " + self.target + self.version]
        head += [name.encode() + b": " + value for name, value in self.headers]
        return b"\r\n".join((*head, b"", self.body))

    def having(self, name: str, value: bytes, beside: bool = False) -> "Request":
        others = tuple(pair for pair in self.headers if beside or pair[0] != name)
        return replace(self, headers=(*others, (name, value)))


@dataclass(frozen=True)
class Site:
    """What honest requests to a server name. ``values``: of each parameter of a path. ``needed``:
    queries that paths need."""

    values: dict[str, Sequence[str]]
    needed: dict[str, str]
    queries: dict[str, list[str]]
    bodies: dict[str, Sequence[bytes]]

    def honest(self, number: int, chance: random.Random) -> Request:
        method, path = ROUTES[number % len(ROUTES)]

        def filled(match: re.Match[str]) -> str:
            return quote(chance.choice(self.values[NAMES.get(path, match[1])]), safe="/")

        target = re.sub(r"\{(\w+)(?::path)?\}", filled, path) + self.needed.get(path, "")
        request = Request(method, target.encode(), (("Host", b"x"), ("Connection", b"close")))
        if path not in self.bodies or method != "POST":
            return request
        body = chance.choice(self.bodies[path])
        kind = b"application/x-ndjson" if b"\n" in body else b"application/json"
        return replace(request, body=body).having("Content-Type", kind)


Mutate = Callable[[Request, Site, random.Random], Request]


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


def _sent(address: httpx.URL, site: Site, count: int, seed: int) -> Seen:
    seen = Seen()

    def send(number: int) -> tuple[int, bytes, Answer]:
        chance = random.Random(f"{seed}/{number}")
        request = site.honest(number, chance)
        # The first request to each route is as it is, to count the routes that are reached.
        if number >= len(ROUTES):
            for mutate in chance.choices(MUTATIONS, k=chance.choice((1, 1, 1, 2, 3))):
                request = mutate(request, site, chance)
        raw = _framed(request).raw
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


def _framed(request: Request) -> Request:
    """With the length of its body, where no mutation gave it a framing."""
    named = {name for name, _ in request.headers}
    if not request.body or named & {"Content-Length", "Transfer-Encoding"}:
        return request
    return request.having("Content-Length", str(len(request.body)).encode())


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


# -- kinds of mutation: each makes another request of one -----------------------------------------


def method(request: Request, _: Site, chance: random.Random) -> Request:
    return replace(request, method=chance.choice(METHODS))


def target(request: Request, _: Site, chance: random.Random) -> Request:
    """The path is another one, or is written in another way."""
    path = request.target
    at = chance.randrange(len(path) + 1)
    odd = chance.choice(
        (*BYTES, b"%00", b"%2f", b"%2e%2e/", b"../", b"//", b"%ff", b"%c3%a9", b"%")
    )
    others = (path[:at] + odd + path[at:], path[:at], path + b"/", b"/" + path, path.upper())
    forms = (b"http://x" + path, b"http://x", b"*", b"", b"x", path + b"#x", b"//x" + path)
    return replace(request, target=chance.choice((*others, *forms, *others)))


def parameter(request: Request, _: Site, chance: random.Random) -> Request:
    """A part of the path is another value."""
    parts = request.target.split(b"/")
    value = chance.choice((*VALUES, "f" * 64, "0" * 16, "0" * 32, "000.p/0", "x999/000", "A" * 81))
    parts[chance.randrange(len(parts))] = quote(value, safe="").encode()
    return replace(request, target=b"/" + b"/".join(parts).lstrip(b"/"))


def query(request: Request, site: Site, chance: random.Random) -> Request:
    """Parameters that the route, or another one, has, with values of any kind."""
    path = request.target.decode("latin-1").partition("?")[0]
    own = next((names for known, names in site.queries.items() if known.startswith(path)), None)
    names = own or chance.choice([*site.queries.values()])
    given = []
    for _ in range(chance.choice((1, 1, 2, 4, 60))):
        name = chance.choice((*names, *names, "x", ""))
        known = site.values.get(chance.choice([*site.values]), ())
        value = chance.choice((*VALUES, *known))
        given.append(chance.choice((f"{quote(name)}={quote(value)}", quote(name), f"{name}=%ff")))
    return replace(request, target=request.target + b"?" + "&".join(given).encode())


def header(request: Request, _: Site, chance: random.Random) -> Request:
    """Another value of a header, or a second one."""
    name = chance.choice([*HEADERS])
    value = chance.choice(HEADERS[name]).encode()
    if chance.random() < 0.2:
        value += chance.choice(BYTES)
    return request.having(name, value, beside=chance.random() < 0.3)


def many_headers(request: Request, _: Site, chance: random.Random) -> Request:
    count, length = chance.choice(((300, 5), (5, 9000), (1, 70_000), (3000, 1)))
    more = tuple((f"X-{number}", b"a" * length) for number in range(count))
    return replace(request, headers=(*request.headers, *more))


def framing(request: Request, _: Site, chance: random.Random) -> Request:
    """Give the body another length, or state its length in another way."""
    body = request.body or b"{}"
    if chance.random() < 0.5:
        length = len(body) + chance.choice((-1, 1, 0, 10**9, -len(body)))
        return replace(request, body=body).having("Content-Length", str(length).encode())
    at = chance.randrange(len(body))
    size = chance.choice((b"%x" % at, b"%X" % at, b"%x;a=b" % at, b"-1", b"zz", b"f" * 20, b""))
    rest = b"%x\r\n%s\r\n" % (len(body) - at, body[at:])
    end = chance.choice(
        (b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"0\r\n", b"", b"0\r\n\r\nGET / HTTP/1.1\r\n")
    )
    chunks = size + b"\r\n" + body[:at] + b"\r\n" + rest + end
    return replace(request, body=chunks).having("Transfer-Encoding", b"chunked")


def version(request: Request, _: Site, chance: random.Random) -> Request:
    versions = (b" HTTP/1.0", b" HTTP/2.0", b" HTTP/1.9", b"", b" HTTP/1.1 ", b" http/1.1", b" X")
    return replace(request, version=chance.choice(versions))


def body(request: Request, _: Site, chance: random.Random) -> Request:
    """The body is another document, or is damaged; a request without one gets one."""
    odd = json.dumps(chance.choice(ODD)).encode()
    whole = request.body or odd
    document = chance.choice(
        (whole, whole, odd, b"[" * 5000, b"{}\n" * chance.choice((1, 20, 600)))
    )
    coding = chance.choice(
        (document, b"\xef\xbb\xbf" + document, document.decode("latin-1").encode("utf-16"))
    )
    return replace(request, body=chance.choice((damaged(document, chance), coding, document)))


def other_route(request: Request, site: Site, chance: random.Random) -> Request:
    """The body and headers of one route at another."""
    other = site.honest(chance.randrange(len(ROUTES)), chance)
    return replace(request, target=other.target, method=chance.choice((request.method, "POST")))


def damaged(raw: bytes, chance: random.Random) -> bytes:
    """Bytes are lost, doubled or replaced."""
    at, length = chance.randrange(len(raw) + 1), chance.choice((1, 2, 16, 500))
    there = raw[at : at + length]
    junk = bytes(chance.randrange(256) for _ in range(length))
    put = chance.choice((b"", there + there, junk, b"\r\n", b"\n", b"\x00", b" "))
    return raw[:at] + put + raw[at + length :]


MUTATIONS: tuple[Mutate, ...] = (
    *(method, target, target, parameter, parameter, query, query, query, header, header, header),
    *(many_headers, framing, framing, version, body, body, body, other_route),
)
