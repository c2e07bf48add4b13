"""Witnesses that cosign checkpoints: a client of C2SP tlog-witness."""

import base64
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from bench_protocol.base.errors import InvalidProof
from bench_protocol.signing import cosignatures
from bench_protocol.signing.cosignatures import WitnessKey

from .countersigning import Countersigned, NoCountersignature, Wanted
from .outgoing import Answer, NoAnswer, post


@dataclass(frozen=True)
class Cosigner:
    """A witness: its key, and the prefix of its address."""

    key: WitnessKey
    url: str
    kind = "cosignature"

    @property
    def name(self) -> str:
        return self.key.name

    def sign(self, wanted: Wanted) -> Countersigned:
        """Ask for a cosignature, with the proof that the log grew from what the witness signed.

        Raises:
            NoCountersignature: there is no answer, or no cosignature of this witness in it.
        """
        answer = self._ask(wanted, wanted.signed_before)
        if answer.status == 409:  # it has signed another size: its answer says which
            known = _size(answer.body)
            if known is None or known > wanted.size:
                raise NoCountersignature(
                    f"{self.name} says that it has signed size {known}; the log has {wanted.size}"
                )
            answer = self._ask(wanted, known)
        if answer.status != 200:
            raise NoCountersignature(f"{self.name} answered HTTP {answer.status}")
        try:
            lines = "".join(cosignatures.lines_of(answer.body.decode()))
            found = cosignatures.cosignatures(wanted.note + lines, [self.key])
        except (InvalidProof, UnicodeDecodeError) as error:
            raise NoCountersignature(f"{self.name} sent no cosignature: {error}") from None
        if not found:
            raise NoCountersignature(f"{self.name} sent no cosignature of its key")
        try:
            at = datetime.fromtimestamp(found[0].at, UTC)
        except (OverflowError, OSError, ValueError):
            raise NoCountersignature(f"{self.name} signed at no time of a calendar") from None
        return Countersigned(found[0].line.encode(), at)

    def _ask(self, wanted: Wanted, old_size: int) -> Answer:
        proof = [base64.b64encode(each).decode() for each in wanted.growth(old_size)]
        body = "\n".join((f"old {old_size}", *proof, "", wanted.note))
        try:
            address = f"{self.url.rstrip('/')}/add-checkpoint"
            return post(address, body.encode(), "text/plain; charset=utf-8")
        except NoAnswer as error:
            raise NoCountersignature(f"{self.name}: {error}") from None


def parse(text: str) -> tuple[Cosigner, ...]:
    """Read the setting: a verifier key and an address in turn, separated by spaces.

    Raises:
        ValueError: it is something else.
    """
    words = text.split()
    if len(words) % 2:
        raise ValueError("each witness is a verifier key and an address")
    found = []
    for key, url in zip(words[::2], words[1::2], strict=True):
        if not re.fullmatch(r"https?://\S+", url):
            raise ValueError(f"{url} is no address with http:// or https://")
        try:
            found.append(Cosigner(cosignatures.parse_witness_key(key), url))
        except InvalidProof as error:
            raise ValueError(error.detail) from None
    return tuple(found)


def _size(body: bytes) -> int | None:
    """The size in a 409; None if there is none."""
    match = re.fullmatch(rb"(0|[1-9][0-9]{0,18})\n", body)
    return int(match[1]) if match else None
