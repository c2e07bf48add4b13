"""Witnesses that cosign checkpoints: a client of C2SP tlog-witness."""

import base64
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from bench_protocol.base.errors import InvalidProof
from bench_protocol.signing import cosignatures
from bench_protocol.signing.cosignatures import WitnessKey

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 30.0
MAX_ANSWER_BYTES = 128 * 1024
CHUNK_BYTES = 8 * 1024


class Answer(NamedTuple):
    """An HTTP status and body."""

    status: int
    body: bytes


class NoCosignature(RuntimeError):
    """A witness gave no cosignature; the message says why, in one line."""


@dataclass(frozen=True)
class Wanted:
    """A request for a cosignature. ``note``: the checkpoint as the log signed it;
    ``signed_before``: the largest size that this witness has cosigned, 0 if none; ``growth``: the
    consistency proof from an older size."""

    note: str
    size: int
    signed_before: int
    growth: Callable[[int], Sequence[bytes]]


@dataclass(frozen=True)
class Cosigner:
    """A witness: its key, and the prefix of its address."""

    key: WitnessKey
    url: str

    @property
    def name(self) -> str:
        return self.key.name

    def sign(self, wanted: Wanted) -> str:
        """Ask for a cosignature, with the proof that the log grew; returns its line, verified.

        Raises:
            NoCosignature: there is no answer, or no cosignature of this witness in it.
        """
        answer = self._ask(wanted, wanted.signed_before)
        if answer.status == 409:  # it has signed another size: its answer says which
            signed = _size(answer.body)
            if signed is None or signed > wanted.size:
                raise NoCosignature(
                    f"{self.name} says that it has signed size {signed}; the log has {wanted.size}"
                )
            answer = self._ask(wanted, signed)
        if answer.status != 200:
            raise NoCosignature(f"{self.name} answered HTTP {answer.status}")
        try:
            lines = "".join(cosignatures.lines_of(answer.body.decode()))
            verified = cosignatures.cosignatures(wanted.note + lines, [self.key])
        except (InvalidProof, UnicodeDecodeError) as error:
            raise NoCosignature(f"{self.name} sent no cosignature: {error}") from None
        if not verified:
            raise NoCosignature(f"{self.name} sent no cosignature of its key")
        return verified[0].line

    def _ask(self, wanted: Wanted, old_size: int) -> Answer:
        proof = [base64.b64encode(each).decode() for each in wanted.growth(old_size)]
        body = "\n".join((f"old {old_size}", *proof, "", wanted.note))
        address = f"{self.url.rstrip('/')}/add-checkpoint"
        try:
            return post(address, body.encode())
        except (OSError, HTTPException, ValueError) as error:
            words = " ".join((str(error) or type(error).__name__).split())
            raise NoCosignature(f"{self.name}: {address} does not answer: {words}") from None


def parse(text: str) -> tuple[Cosigner, ...]:
    """Read the setting: a verifier key and an address in turn, separated by spaces.

    Raises:
        ValueError: it is something else.
    """
    words = text.split()
    if len(words) % 2:
        raise ValueError("each witness is a verifier key and an address")
    cosigners = []
    for key, url in zip(words[::2], words[1::2], strict=True):
        if not re.fullmatch(r"https?://\S+", url):
            raise ValueError(f"{url} is no address with http:// or https://")
        try:
            cosigners.append(Cosigner(cosignatures.parse_witness_key(key), url))
        except InvalidProof as error:
            raise ValueError(error.detail) from None
    return tuple(cosigners)


def _size(body: bytes) -> int | None:
    match = re.fullmatch(rb"(0|[1-9][0-9]{0,18})\n", body)
    return int(match[1]) if match else None


def post(url: str, body: bytes, seconds: float = ANSWER_SECONDS) -> Answer:
    """Post a text; an answer of any status is an answer, if it is whole within ``seconds``.

    Raises:
        OSError, HTTPException, ValueError: the server is down, too slow, or says too much.
    """
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    request = Request(url, body, headers)  # noqa: S310 - settings allow http(s)
    ends = time.monotonic() + seconds
    try:
        response = urlopen(request, timeout=min(CONNECT_SECONDS, seconds))  # noqa: S310
    except HTTPError as error:
        with error:
            return Answer(error.code, error.read(CHUNK_BYTES))
    with response:
        return Answer(response.status, _read(response, ends))


def _read(response: HTTPResponse, ends: float) -> bytes:
    parts, size = [], 0
    while part := response.read1(CHUNK_BYTES):
        parts.append(part)
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise OSError(f"more than {MAX_ANSWER_BYTES:,} bytes")
        if time.monotonic() > ends:
            raise OSError("the answer takes too long")
    return b"".join(parts)
