"""Verify a result without trusting its source: envelope, key history, inclusion in the log.

A *bundle* is one document of server answers with everything needed; verifying it asks no server. It
proves who signed what and that the log contains it, not that it is true. A bundle also holds the
server's verdicts, from which :mod:`bench_protocol.trust.shows` says what the result shows; these
are the server's word.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bench_protocol.base import strict_json
from bench_protocol.base.errors import BadSignature, ProtocolError
from bench_protocol.base.format import plural
from bench_protocol.payload import statement
from bench_protocol.payload.result import Result
from bench_protocol.signing import envelope, keys, note, receipts
from bench_protocol.signing.envelope import Envelope
from bench_protocol.signing.receipts import Receipt
from bench_protocol.training.recomputation import Recomputation
from bench_protocol.trust import shows
from bench_protocol.trust.omissions import Omissions

from ..base.errors import UsageProblem
from . import key_history, recomputations
from .log_receipts import parse_receipt
from .outbox import ANSWER_SUFFIX, Entry

RESULT_PATH = re.compile(r"(https?://[^/]+)(?:/api/v1)?/results/([0-9a-f]{16})/?")
MAX_BUNDLE_BYTES = 8 * 1024 * 1024
# The parts of a bundle, and the part that it lacks where its server no longer has the result.
PARTS = ("envelope", "receipt", "key", "log")
JUDGED = "judged"
# The server's recomputations of its seeded jobs: with JUDGED, or none at all.
RECOMPUTATIONS = "recomputations"
# Events of a key that a page has, and that are read at most: about as many as a bundle holds.
KEY_PAGE, MOST_KEY_EVENTS = 200, 5_000
# Returns the document at a path of a server.
Read = Callable[[str], dict[str, Any]]


@dataclass(frozen=True)
class Verified:
    """``log_index``: None without a receipt. ``payload``: the signed bytes. ``stated``: the
    server's recomputations of its seeded jobs."""

    key_id: str
    log_index: int | None
    sentences: tuple[str, ...]
    payload: bytes
    stated: tuple[Recomputation, ...] = ()


def parse_address(text: str) -> tuple[str, str] | None:
    """Server and id of a result's address, or None if the text is no address.

    Raises:
        UsageProblem: the address is not that of a result.
    """
    match = RESULT_PATH.fullmatch(text)
    if match is None and text.startswith(("http://", "https://")):
        raise UsageProblem(
            f"{text} is not the address of a result; that is http://SERVER/results/ID, with the 16 "
            "hex digits that bench-agent results list shows"
        )
    return (match[1], match[2]) if match else None


def fetch_bundle(result_id: str, read: Read) -> dict[str, Any]:
    sealed = read(f"/api/v1/results/{result_id}/envelope")
    receipt = read(f"/api/v1/results/{result_id}/receipt")
    return complete_bundle(sealed, receipt, read) | fetch_judged(result_id, read)


def fetch_judged(result_id: str, read: Read) -> dict[str, Any]:
    """The parts of what the server says of a result: status, trust level, verdicts, omissions; and
    its recomputations of the seeded jobs."""
    answer = read(f"/api/v1/results/{result_id}")
    # Fetch recomputations after the level, so that those it follows from are there.
    stated = read(f"/api/v1/results/{result_id}/recomputations")
    judged = {name: answer[name] for name in ("status", "trust_level", "verdicts", "omissions")}
    return {JUDGED: judged, RECOMPUTATIONS: stated}


def complete_bundle(sealed: dict[str, Any], receipt: dict[str, Any], read: Read) -> dict[str, Any]:
    """Complete an envelope and its receipt with the server's answers about key and log."""
    key_id = sealed["signatures"][0]["keyid"]
    key = _fetch_key(f"/api/v1/keys/{key_id}?limit={KEY_PAGE}", read)
    return {"envelope": sealed, "receipt": receipt, "key": key, "log": read("/api/v1/log")}


def _fetch_key(path: str, read: Read) -> dict[str, Any]:
    """A key with the events of all its pages.

    Raises:
        BadSignature: they are more than are read.
    """
    key = page = read(path)
    events = [*page["events"]]
    while page["next_start"] is not None:
        if len(events) >= MOST_KEY_EVENTS or not page["events"]:
            raise BadSignature(f"the key's history does not end after {len(events):,} events")
        page = read(f"{path}&start={page['next_start']}")
        events += page["events"]
    return key | {"events": events, "next_start": None}


def read_file(path: Path) -> dict[str, Any] | Entry:
    """Read a bundle, or an envelope of the outbox with its receipt.

    Raises:
        UsageProblem: the file is neither.
    """
    if path.suffix == ANSWER_SUFFIX:
        beside = path.with_suffix(".json")
        raise UsageProblem(
            f"{path} is what the server answered to an envelope: bench-agent verify {beside}"
        )
    try:
        if path.exists() and not path.is_file():  # a pipe or a device may never end
            raise OSError(0, "it is not a regular file")
        with path.open("rb") as file:
            raw = file.read(MAX_BUNDLE_BYTES + 1)
        document: Any = strict_json.loads(raw, max_bytes=MAX_BUNDLE_BYTES)
        if "payloadType" in document:
            envelope.read(raw)
            return Entry(path)
        said = {name: document[name] for name in (JUDGED, RECOMPUTATIONS) if name in document}
        return {name: document[name] for name in PARTS} | said
    except OSError as error:
        raise UsageProblem(
            f"{path} cannot be read ({error.strerror}); give a result's address "
            "(http://SERVER/results/ID), or a file: a bundle or an envelope of the outbox"
        ) from None
    except (ProtocolError, KeyError, TypeError) as error:
        raise UsageProblem(
            f"{path} is neither a bundle nor an envelope ({error}); bench-agent verify ADDRESS "
            "--save FILE makes a bundle, and envelopes are in the agent's outbox"
        ) from None


def verify(bundle: dict[str, Any], log_key: str | None = None) -> Verified:
    """Check a bundle; ``log_key``: verifier key of the trusted log, None takes the bundle's.

    Raises:
        ProtocolError: something does not hold; it says what.
    """
    try:
        trusted = note.parse_key(log_key or bundle["log"]["key"])
        operator = statement.public_key(bundle["log"]["operator_key"])
        challenge_key = statement.public_key(bundle["log"]["challenge_key"])
        history = key_history.replay(bundle["key"]["events"], trusted, operator)
        opened = envelope.read(strict_json.dumps(bundle["envelope"]))
        receipt = parse_receipt(bundle["receipt"])
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, ProtocolError):
            raise
        raise BadSignature(f"the bundle lacks something: {error}") from None
    key_id, signed = _signed(opened, history.find)
    logged = _logged(opened, receipt, trusted)
    history.require_counting(key_id, receipt.index)
    events = f"{plural(len(history.kinds), 'event')}: {', '.join(history.kinds)}"
    history_words = f"the key's history is valid ({events})"
    result = statement.parse_result(opened.payload)
    stated, recomputed = _stated(bundle, result, trusted, challenge_key)
    said = (history_words, signed, logged, *recomputed)
    return Verified(key_id, receipt.index, said, opened.payload, stated)


def verify_own(
    raw: bytes,
    key: Ed25519PublicKey | None,
    receipt: Receipt | None = None,
    log_key: str | None = None,
) -> Verified:
    """Check an envelope of this machine's key with the receipt alone, without a server.

    Args:
        log_key: the verifier key of the receipt's log; needed with ``receipt``.

    Raises:
        ProtocolError: something does not hold; it says what.
        UsageProblem: another key signed it.
    """
    opened = envelope.read(raw)
    signer = opened.signatures[0].key_id
    if key is None or signer != keys.key_id(key):
        raise UsageProblem(
            f"key {signer} signed it, which is not this machine's: only a server that knows the "
            "key can verify it, bench-agent verify http://SERVER/results/ID"
        )
    key_id, signed = _signed(opened, key_history.among({signer: key}))
    said = ["the key is this machine's", signed]
    if receipt is None or log_key is None:
        return Verified(key_id, None, tuple(said), opened.payload)
    said.append(_logged(opened, receipt, note.parse_key(log_key)))
    return Verified(key_id, receipt.index, tuple(said), opened.payload)


def facts(verified: Verified, bundle: dict[str, Any] | None = None) -> shows.Facts:
    """What a verified result's claims follow from: the verdicts of its server, if there are
    any.

    Raises:
        BadSignature: the verdicts in the bundle are malformed.
    """
    result, logged = statement.parse_result(verified.payload), verified.log_index is not None
    judged = None if bundle is None else bundle.get(JUDGED)
    if judged is None:
        return shows.facts_of(result, "unknown", logged=logged)
    try:
        found = shows.facts_of(
            result, str(judged["status"]), judged["trust_level"], judged["verdicts"] or (),
            logged=logged, omissions=Omissions.of(judged["omissions"]),
        )  # fmt: skip
        found.checks  # noqa: B018 - reads them all
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadSignature(f"the bundle's verdicts are malformed: {error}") from None
    return found


def _signed(opened: Envelope, find: Callable[[str], Ed25519PublicKey]) -> tuple[str, str]:
    payload = envelope.open_envelope(opened, statement.RESULT_PAYLOAD_TYPE, find)
    if len(opened.signatures) != 1:
        raise BadSignature("a result has exactly one signature")
    key_id = opened.signatures[0].key_id
    statement.require_author(statement.parse_result(payload).agent.key_id, key_id)
    return key_id, f"key {key_id} signed it, and nothing was changed"


def _stated(
    bundle: dict[str, Any], result: Result, trusted: note.NoteKey, signer: Ed25519PublicKey
) -> tuple[tuple[Recomputation, ...], tuple[str, ...]]:
    """The server's recomputations of its jobs, and sentences about them. They must give the trust
    level that the bundle shows."""
    stated: tuple[Recomputation, ...] = ()
    sentences: tuple[str, ...] = ()
    try:
        document = bundle.get(RECOMPUTATIONS)
        if document is not None and document["recomputations"]:
            stated, sentence = recomputations.verified(document, result, trusted, signer)
            sentences = (sentence,)
        recomputations.require_level(stated, result, (bundle.get(JUDGED) or {}).get("trust_level"))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ProtocolError):
            raise
        raise BadSignature(f"the bundle's recomputations are malformed: {error}") from None
    return stated, sentences


def _logged(opened: Envelope, receipt: Receipt, trusted: note.NoteKey) -> str:
    # Leave out the size of the checkpoint, because the log has grown since the receipt.
    checkpoint = receipts.verify_receipt(receipt, opened, trusted)
    return f"it is entry {receipt.index} in the log of {checkpoint.origin}"
