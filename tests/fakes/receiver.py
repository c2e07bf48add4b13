"""A receiver of webhooks on loopback with TLS, which behaves badly on demand."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bench_protocol.base import strict_json

NAME = "receiver.test"
ALLOWED = frozenset({NAME})
VALID = timedelta(days=3650)


class Received(NamedTuple):
    """A message; the names of headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def type(self) -> str:
        return str(strict_json.loads(self.body)["type"])

    @property
    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = strict_json.loads(self.body)["data"]
        return data


@dataclass
class Receiver:
    """``behave`` gives the answer to a message: a status, ``hang``, ``drip`` or ``drop``."""

    behave: Callable[[Received], int | str] = lambda _: 204
    port: int = 0
    received: list[Received] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"https://{NAME}:{self.port}/secret-path?key=1"


@contextmanager
def receiving(certificate: Path) -> Iterator[Receiver]:
    """A receiver with its own certificate, which is written to a file with its key.

    The certificate is for ``receiver.test`` and ``localhost``.
    """
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            message = Received(self.path, headers, body)
            receiver.received.append(message)
            answer = receiver.behave(message)
            if answer == "hang":
                receiver.ended.wait(60)
            elif answer == "drip":
                with suppress(OSError):
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
                    while not receiver.ended.wait(0.02):
                        self.wfile.write(b"x")
            elif isinstance(answer, int):
                self.send_response(answer)
                if 300 <= answer < 400:
                    self.send_header("Location", f"https://{NAME}:{receiver.port}/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a client that left

    write_certificate(certificate)
    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    receiver.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def write_certificate(path: Path) -> None:
    """A self-signed certificate and its key, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    names = [x509.DNSName(one) for one in (NAME, "localhost")]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID)
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(
        certificate.public_bytes(Encoding.PEM)
        + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )


def loopback(_host: str, port: int) -> list[tuple[Any, ...]]:
    """A resolver that knows one address."""
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
