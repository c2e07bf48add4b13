"""A proxy between agents and server that harms some of the requests."""

import http.client
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, NamedTuple

Harm = Literal[
    "delayed", "request lost", "request cut", "answer lost", "answer cut", "502", "twice at once"
]
HARMED_SHARE = 0.4
LONGEST_DELAY_SECONDS = 1.0
UNCHANGED = ("content-type", "content-encoding", "retry-after")


class Answer(NamedTuple):
    """An answer of the server."""

    status: int
    headers: dict[str, str]
    body: bytes


BAD_GATEWAY = Answer(502, {"content-type": "text/html"}, b"<h1>502 Bad Gateway</h1>")


class Proxy(ThreadingHTTPServer):
    """Forwards to a loopback port; while ``harm`` is set, some requests are harmed that way, which
    ``harmed`` counts."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, upstream_port: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.upstream_port = upstream_port
        self.harm: Harm | None = None
        self.harmed = 0
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def next_harm(self) -> Harm | None:
        """How the next request is harmed, if it is."""
        with self._lock:
            if self.harm is None or random.random() > HARMED_SHARE:
                return None
            self.harmed += 1
            return self.harm

    def handle_error(self, request: object, client_address: object) -> None:
        """An agent that left is nothing to print."""


class Handler(BaseHTTPRequestHandler):
    """One connection of an agent."""

    protocol_version = "HTTP/1.1"
    server: Proxy

    def do_GET(self) -> None:
        harm = self.server.next_harm()
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if harm == "delayed":
            time.sleep(random.uniform(0, LONGEST_DELAY_SECONDS))
        if harm in ("request lost", "request cut"):
            if harm == "request cut":
                self._forward_half(body)
            self.close_connection = True
            return
        if harm == "twice at once":
            with ThreadPoolExecutor(2) as pool:
                answer = random.choice([*pool.map(lambda _: self._forwarded(body), range(2))])
        elif harm == "502" and random.random() < 0.5:
            answer = BAD_GATEWAY  # the server never saw it
        else:
            answer = self._forwarded(body)
        if harm == "answer lost":
            self.close_connection = True
            return
        self._send(BAD_GATEWAY if harm == "502" else answer, cut=harm == "answer cut")

    do_POST = do_PUT = do_GET  # noqa: N815 - names of the base class

    def _upstream(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.server.upstream_port, timeout=30)

    def _forwarded(self, body: bytes) -> Answer:
        connection = self._upstream()
        try:
            connection.request(self.command, self.path, body, self._headers())
            response = connection.getresponse()
            kept = {n: v for n in UNCHANGED if (v := response.headers.get(n)) is not None}
            return Answer(response.status, kept, response.read())
        except (OSError, http.client.HTTPException):
            return BAD_GATEWAY
        finally:
            connection.close()

    def _forward_half(self, body: bytes) -> None:
        connection = self._upstream()
        try:
            connection.putrequest(self.command, self.path)
            for name, value in self._headers().items():
                connection.putheader(name, value)
            connection.putheader("content-length", str(len(body) or 10))
            connection.endheaders(body[: len(body) // 2])
        except OSError:
            pass
        finally:
            connection.close()

    def _headers(self) -> dict[str, str]:
        names = ("content-type", "authorization", "accept-encoding")
        return {name: self.headers[name] for name in names if name in self.headers}

    def _send(self, answer: Answer, cut: bool) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body[: len(answer.body) // 2] if cut else answer.body)
        self.close_connection = self.close_connection or cut

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@contextmanager
def running(upstream_port: int) -> Iterator[Proxy]:
    """A proxy in front of a loopback port, until the context ends."""
    proxy = Proxy(upstream_port)
    thread = threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()
