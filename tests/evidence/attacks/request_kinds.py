"""Kinds of mutation: each turns a request into another."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from .mutations import ODD

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

    def framed(self) -> "Request":
        """The request with the length of its body, unless a mutation framed it."""
        named = {name for name, _ in self.headers}
        if not self.body or named & {"Content-Length", "Transfer-Encoding"}:
            return self
        return self.having("Content-Length", str(len(self.body)).encode())


@dataclass(frozen=True)
class Site:
    """What honest requests to a server name. ``values``: of each parameter of a path. ``needed``:
    queries that paths need."""

    values: dict[str, Sequence[str]]
    needed: dict[str, str]
    queries: dict[str, list[str]]
    bodies: dict[str, Sequence[bytes]]


Mutate = Callable[[Request, Site, random.Random], Request]


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


def damaged(raw: bytes, chance: random.Random) -> bytes:
    """Bytes are lost, doubled or replaced."""
    at, length = chance.randrange(len(raw) + 1), chance.choice((1, 2, 16, 500))
    there = raw[at : at + length]
    junk = bytes(chance.randrange(256) for _ in range(length))
    put = chance.choice((b"", there + there, junk, b"\r\n", b"\n", b"\x00", b" "))
    return raw[:at] + put + raw[at + length :]


MUTATIONS: tuple[Mutate, ...] = (
    *(method, target, target, parameter, parameter, query, query, query, header, header, header),
    *(many_headers, framing, framing, version, body, body, body),
)
