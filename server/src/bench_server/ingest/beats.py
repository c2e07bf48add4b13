"""Beats: sign the time of a head, look at what a result says of them, and keep nothing."""

from dataclasses import dataclass
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol.payload import acts, beats
from bench_protocol.payload.beats import BeatRequest, SignedTime
from bench_protocol.payload.result import Result

from ..checks.case import Case
from ..checks.verdicts import Effect, Finding
from ..log.server_keys import Identity


@dataclass(frozen=True)
class BeatAnswer:
    """When the server had a head, and its signature over that; see :mod:`.beats`."""

    at: str
    signature: str


def answer(raw: bytes, origin: str, key: Ed25519PrivateKey, now: datetime) -> BeatAnswer:
    """Sign the time of a head. No database is read: a result shows whether its challenge was
    issued to its key.

    Raises:
        MalformedJson, InvalidField: the body is no ``BeatRequest``.
    """
    request = acts.parse(BeatRequest, raw)
    at = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    statement = SignedTime(**request.model_dump(), server_origin=origin, at=at)
    return BeatAnswer(at, beats.signature(statement, key))


def require_own(result: Result, identity: Identity) -> None:
    """Check that this server signed the times in a result whose challenge names it.

    Raises:
        BadSignature: it did not.
    """
    if result.challenge is not None and result.challenge.server_origin == identity.origin:
        beats.require_signed(result, identity.challenge)


def beats_agree(case: Case) -> Finding:
    """The block times were fixed when the last beat was posted, and agree with the server's clock.
    The signatures were verified when the result was accepted."""
    said = beats.verdict(case.result)
    if case.result.beats and not case.bound:
        sentence = "no fresh challenge of this server binds its beats"
        return Finding(True, sentence, {"verdict": "unbounded"}, checked=False)
    figures = {"verdict": said.kind, **said.figures}
    passed = said.kind in ("bounded", "unbounded")
    return Finding(passed, said.sentence, figures, checked=said.kind != "unbounded")


def effect(finding: Finding) -> Effect:
    """Edited figures are certainly wrong; a clock that disagrees shows no moment."""
    return "unranked" if finding.figures["verdict"] == "edited" else "stale"
