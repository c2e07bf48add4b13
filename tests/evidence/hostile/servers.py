"""Programs that are no Trainmark server: each sends its own answer to a client."""

import gzip
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from tests.fakes.log import log_of
from tests.fakes.results import private_key

from bench_protocol.signing import envelope

Send = Callable[[socket.socket, str], None]
DEEP = b"[" * 100_000 + b"]" * 100_000
RESET = struct.pack("ii", 1, 0)


def answer(
    body: bytes, status: str = "200 OK", length: int | None = None, **headers: str
) -> Callable[[socket.socket, str], None]:
    given = {"Content-Type": "application/json", "Content-Length": str(length or len(body))}
    named = given | {name.replace("_", "-"): value for name, value in headers.items()}
    return raw(head(status, named) + body)


def head(status: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")


def raw(content: bytes) -> Send:
    return lambda client, path: client.sendall(content)


def of_kind(**fields: object) -> Send:
    return answer(json.dumps(fields).encode())


def endless(first: bytes, again: bytes, pause: float = 0.0) -> Send:
    def send(client: socket.socket, path: str) -> None:
        client.sendall(first)
        while True:
            client.sendall(again)
            time.sleep(pause)

    return send


def reset(client: socket.socket, path: str) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


JSON_HEAD = head("200 OK", {"Content-Type": "application/json"})
CHUNKED = head("200 OK", {"Transfer-Encoding": "chunked"})
LOG = {"origin": "o", "key": "o+00000000+" + "A" * 44, "checkpoint": "o\n5\nAAAA\n\n— o AAAA\n"}
SERVERS: dict[str, Send] = {
    "a page": answer(b"<html>login</html>", Content_Type="text/html"),
    "a page that is refused": answer(b"<html>no</html>", "403 Forbidden", Content_Type="text/html"),
    "a redirect to itself": answer(b"", "302 Found", Location="/healthz"),
    "a redirect elsewhere": answer(b"", "307 Moved", Location="http://127.0.0.1:1/steal"),
    "another type": answer(b'{"a":1}', Content_Type="image/png; charset=\xff"),
    "half a body": answer(b'{"a":', length=1000),
    "less than it sends": answer(b'{"a":1}', length=2),
    "a length that is none": raw(head("200 OK", {"Content-Length": "-5"}) + b"{}"),
    "two lengths": raw(head("200 OK", {"Content-Length": "2, 3"}) + b"{}"),
    "chunks of rubbish": raw(CHUNKED + b"zz\r\nabc\r\n"),
    "a chunk without an end": endless(CHUNKED + b"fffffff\r\n", b"a", 0.05),
    "a byte at a time": endless(JSON_HEAD, b" ", 0.05),
    "no answer": lambda client, path: time.sleep(2),
    "a closed door": raw(b""),
    "a reset": reset,
    "TLS": raw(b"\x15\x03\x01\x00\x02\x02\x28"),
    "headers without end": endless(b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"a" * 60_000 + b"\r\n"),
    "a status line without end": endless(b"HTTP/1.1 200 ", b"O" * 60_000),
    "no HTTP": raw(b"220 mail.example ESMTP\r\n"),
    "HTTP 0.9": raw(b"hello\r\n"),
    "HTTP 2": raw(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + b"\x00" * 18),
    "status 999": answer(b"{}", "999 Odd"),
    "status 100 for ever": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.01),
    "status 204": raw(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "deep JSON": answer(DEEP),
    "a deep member": answer(b'{"a":' + DEEP + b"}"),
    "a deep problem": answer(b'{"code":"x","detail":' + DEEP + b"}", "422 No"),
    "a huge number": answer(b'{"id":' + b"9" * 5000 + b"}"),
    "NaN": answer(b'{"id":NaN,"license":Infinity}'),
    "null": answer(b"null"),
    "nothing": answer(b""),
    "not UTF-8": answer(b'{"a":"\xff\xfe"}'),
    "a byte order mark": answer(b"\xef\xbb\xbf{}"),
    "wrong types": of_kind(origin=[], key={}, checkpoint=5, license=[], id=1, results=3, status=[]),
    "a problem of wrong types": answer(b'{"code":5,"detail":{"a":1},"hint":[1]}', "422 No"),
    "a code that is no text": answer(b'{"code":[],"detail":null}', "409 No"),
    "a log of another": of_kind(**LOG, license="x"),
    "null receipts": of_kind(**LOG, receipt=None, id=None, results=None, signatures=None),
    "controls": answer(b'{"code":"x","detail":"\\u001b]0;x\\u0007\\u009b2J\\u202ea"}', "403 No"),
    "half a surrogate": answer(b'{"code":"\\ud800","detail":"\\udc00","hint":"\\ud83d"}', "403 No"),
    "401": answer(b"{}", "401 Unauthorized"),
    "404": answer(b"Not Found", "404 Not Found", Content_Type="text/plain"),
    "500": answer(b'{"code":"x"}', "500 Broken"),
    "429 for ever": answer(b"{}", "429 Slow", Retry_After="1"),
    "503 for ever": answer(b"{}", "503 Busy", Retry_After="0"),
    "a wait of a date gone": answer(b"{}", "429 Slow", Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
    "a wait without end": answer(b"{}", "429 Slow", Retry_After="9" * 400),
    "a wait of a date that is none": answer(b"{}", "503 Busy", Retry_After="Wed, 31 Feb 99999 x"),
    "a wait of letters": answer(b"{}", "503 Busy", Retry_After="\xb2 soon, -1"),
    "packed without end": answer(gzip.compress(b" " * 20_000_000), Content_Encoding="gzip"),
    "packed rubbish": answer(b"not gzip", Content_Encoding="gzip"),
    "packed in an unknown way": answer(b"{}", Content_Encoding="br, zstd, x"),
    "another product": of_kind(name="registry", version="2", status="ok", results=[]),
    "cookies": answer(b"{}", Set_Cookie="a=" + "b" * 5000 + "; Max-Age=99999999999999999999"),
}


@contextmanager
def serving(name: str, met: bool) -> Iterator[str]:
    """The address of a server that sends the same to everybody; ``met``: its log is a log."""
    log = log_of([envelope.seal("application/x", b"1", private_key())])

    def send(client: socket.socket, path: str) -> None:
        if met and path.startswith(("/api/v1/log", "/tile/")):
            known = log.fetch(path)
            if path == "/api/v1/log":
                known = json.dumps(json.loads(known) | {"license": "CC-BY-4.0"}).encode()
            answer(known)(client, path)
        else:
            SERVERS[name](client, path)

    def serve(client: socket.socket) -> None:
        with client, suppress(OSError):
            client.settimeout(10)
            if request := client.recv(65536):
                if b"Content-Length: " in request and request.endswith(b"\r\n\r\n"):
                    client.recv(65536)
                send(client, request.split(b" ")[1].decode() if b" " in request else "")
                client.shutdown(socket.SHUT_WR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=serve, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
