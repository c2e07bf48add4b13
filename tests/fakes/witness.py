"""A C2SP witness on loopback, which behaves badly on demand."""

import base64
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol.base.errors import InvalidProof
from bench_protocol.signing import cosignatures, merkle, note
from bench_protocol.signing.cosignatures import WitnessKey
from bench_protocol.signing.receipts import parse_checkpoint

from . import http_stub

AT = datetime(2026, 11, 21, 5, tzinfo=UTC)


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

    class Handler(http_stub.Handler):
        def answer(self) -> None:
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

    with http_stub.serving(Handler, ended) as address:
        yield address


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
        return WitnessKey(self.name, self.private_key.public_key().public_bytes_raw())

    def answer(self, path: str, body: bytes) -> Reply | None:
        self.asked.append(body)
        assert path.endswith("/add-checkpoint")
        return self.spoil(self._answer(body.decode()))

    def line(self, text: str) -> str:
        signature = self.private_key.sign(cosignatures.message(text, self.at))
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
