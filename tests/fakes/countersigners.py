"""Others that sign checkpoints, on loopback: an RFC 3161 authority and a C2SP witness. Both behave
badly on demand.
"""

import base64
import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding

from bench_protocol.base.errors import InvalidProof
from bench_protocol.signing import cosignatures, merkle, note
from bench_protocol.signing.cosignatures import WitnessKey
from bench_protocol.signing.receipts import parse_checkpoint

AT = datetime(2026, 11, 21, 5, tzinfo=UTC)
DAYS = timedelta(days=3650)


class Reply(NamedTuple):
    """What a server answers. ``drips``: it goes on and on, a byte at a time."""

    status: int
    body: bytes
    media_type: str = "text/plain"
    drips: bool = False


@contextmanager
def serving(answer: Callable[[str, bytes], Reply | None]) -> Iterator[str]:
    """Serve POST on loopback; gives the address. None: it says nothing until the test ends."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            reply = answer(self.path, body)
            if reply is None:
                ended.wait(60)
                return
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.media_type)
            if not reply.drips:
                self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)
            with suppress(OSError):  # the client has gone
                while reply.drips and not ended.wait(0.02):
                    self.wfile.write(b".")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


# -- a witness ------------------------------------------------------------------------------------


@dataclass
class Witness:
    """A witness that follows tlog-witness. ``spoil`` changes its answer."""

    log_key: note.NoteKey
    name: str = "witness.example/w1"
    private_key: Ed25519PrivateKey = field(
        default_factory=lambda: Ed25519PrivateKey.from_private_bytes(bytes([77]) * 32)
    )
    at: int = int(AT.timestamp())
    size: int = 0
    root: bytes = b""
    spoil: Callable[[Reply], Reply | None] = lambda reply: reply
    asked: list[bytes] = field(default_factory=list)

    @property
    def key(self) -> WitnessKey:
        public_key = self.private_key.public_key().public_bytes_raw()
        return WitnessKey(self.name, "ed25519", public_key)

    def answer(self, path: str, body: bytes) -> Reply | None:
        self.asked.append(body)
        assert path.endswith("/add-checkpoint")
        return self.spoil(self._answer(body.decode()))

    def line(self, text: str) -> str:
        """Its cosignature of a checkpoint's text."""
        signature = self.private_key.sign(cosignatures.ed25519_message(text, self.at))
        raw = self.key.hint + self.at.to_bytes(8, "big") + signature
        return f"\u2014 {self.name} {base64.b64encode(raw).decode()}\n"

    def _answer(self, body: str) -> Reply:
        head, _, checkpoint = body.partition("\n\n")
        old, *proof = head.split("\n")
        match = re.fullmatch(r"old (0|[1-9]\d*)", old)
        assert match is not None
        try:
            text = note.open_note(checkpoint, self.log_key)
        except InvalidProof:
            return Reply(403, b"not signed by the log\n")
        seen, old_size = parse_checkpoint(text), int(match[1])
        if old_size > seen.size:
            return Reply(400, b"the old size is larger\n")
        if old_size != self.size:
            return Reply(409, b"%d\n" % self.size, "text/x.tlog.size")
        try:
            hashes = [base64.b64decode(each) for each in proof]
            if old_size == seen.size and self.size:
                assert self.root == seen.root
            elif old_size:
                merkle.verify_consistency(old_size, seen.size, hashes, self.root, seen.root)
        except (InvalidProof, AssertionError):
            return Reply(422, b"the log did not grow\n")
        self.size, self.root = seen.size, seen.root
        return Reply(200, self.line(text).encode())


# -- a time-stamp authority -----------------------------------------------------------------------


@dataclass
class Authority:
    """An RFC 3161 authority with a root and a leaf. ``changed``: fields of its answers that are
    wrong: ``digest``, ``nonce``, ``status``, ``signature``; ``spoil`` changes the whole answer."""

    changed: frozenset[str] = frozenset()
    spoil: Callable[[Reply], Reply | None] = lambda reply: reply
    asked: int = 0

    @property
    def root(self) -> x509.Certificate:
        return self._issued[0]

    @property
    def pem(self) -> bytes:
        return self.root.public_bytes(Encoding.PEM)

    def answer(self, path: str, body: bytes) -> Reply | None:
        self.asked += 1
        return self.spoil(Reply(200, self.stamp(body), "application/timestamp-reply"))

    def stamp(self, query: bytes) -> bytes:
        """A time-stamp response in DER."""
        if "status" in self.changed:
            return seq(seq(integer(2)))
        digest, nonce = _query(query)
        if "digest" in self.changed:
            digest = hashlib.sha256(b"something else").digest()
        if "nonce" in self.changed:
            nonce += 1
        info = seq(
            integer(1), oid("1.3.6.1.4.1.13762.3"), seq(SHA256, octets(digest)), integer(4711),
            tlv(0x18, AT.strftime("%Y%m%d%H%M%SZ").encode()), integer(nonce),
        )  # fmt: skip
        return seq(seq(integer(0)), self._signed(info))

    def _signed(self, info: bytes) -> bytes:
        _, leaf, key = self._issued
        der = leaf.public_bytes(Encoding.DER)
        attributes = (
            seq(oid("1.2.840.113549.1.9.3"), tlv(0x31, TST_INFO)),
            seq(oid("1.2.840.113549.1.9.4"), tlv(0x31, octets(hashlib.sha256(info).digest()))),
            seq(
                oid("1.2.840.113549.1.9.16.2.47"),
                tlv(0x31, seq(seq(seq(octets(hashlib.sha256(der).digest()))))),
            ),
        )
        sorted_ones = b"".join(sorted(attributes))
        signature = key.sign(tlv(0x31, sorted_ones), ec.ECDSA(hashes.SHA256()))
        if "signature" in self.changed:
            signature = key.sign(b"something else", ec.ECDSA(hashes.SHA256()))
        signer = seq(
            integer(1), seq(leaf.issuer.public_bytes(), integer(leaf.serial_number)), SHA256,
            tlv(0xA0, sorted_ones), seq(oid("1.2.840.10045.4.3.2")), octets(signature),
        )  # fmt: skip
        data = seq(
            integer(3), tlv(0x31, SHA256), seq(TST_INFO, tlv(0xA0, octets(info))), tlv(0xA0, der),
            tlv(0x31, signer),
        )  # fmt: skip
        return seq(oid("1.2.840.113549.1.7.2"), tlv(0xA0, data))

    @cached_property
    def _issued(self) -> tuple[x509.Certificate, x509.Certificate, ec.EllipticCurvePrivateKey]:
        root_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        root_name, name = _name("a root of tests"), _name("an authority of tests")
        root = (
            _certificate(root_name, root_name, root_key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(root_key, hashes.SHA256())
        )
        stamping = x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.TIME_STAMPING])
        leaf = (
            _certificate(root_name, name, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(stamping, critical=True)
            .sign(root_key, hashes.SHA256())
        )
        return root, leaf, key


def _query(query: bytes) -> tuple[bytes, int]:
    """Digest and nonce of a time-stamp query."""
    from rfc3161_client._rust import parse_timestamp_request

    parsed: Any = parse_timestamp_request(query)
    return parsed.message_imprint.message, parsed.nonce


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _certificate(
    issuer: x509.Name, subject: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(AT - DAYS)
        .not_valid_after(AT + DAYS)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates, key_cert_sign=signs_certificates,
        content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, crl_sign=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


# DER, as much of it as a time-stamp needs.


def tlv(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 128:
        return bytes([tag, length]) + content
    size = (length.bit_length() + 7) // 8
    return bytes([tag, 0x80 | size]) + length.to_bytes(size, "big") + content


def seq(*parts: bytes) -> bytes:
    return tlv(0x30, b"".join(parts))


def integer(value: int) -> bytes:
    return tlv(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def octets(value: bytes) -> bytes:
    return tlv(4, value)


def oid(text: str) -> bytes:
    first, second, *rest = map(int, text.split("."))
    content = bytes([40 * first + second])
    for value in rest:
        digits = [value & 0x7F]
        while value := value >> 7:
            digits.append(0x80 | value & 0x7F)
        content += bytes(reversed(digits))
    return tlv(6, content)


TST_INFO = oid("1.2.840.113549.1.9.16.1.4")
SHA256 = seq(oid("2.16.840.1.101.3.4.2.1"))
