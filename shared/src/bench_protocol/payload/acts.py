"""Signed payloads besides results: rotation and revocation of keys, acts on results and owners,
challenges of a server. Each has its own payload type.
"""

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, StringConstraints

from ..base import strict_json
from ..base.errors import InvalidField
from ..base.units import Count, Named, Normal, Sha256, Text, UtcTime, Wire
from .result import ResultId, RunId

ACT_PAYLOAD_TYPE = "application/vnd.trainmark.act.v1+json"
CHALLENGE_PAYLOAD_TYPE = "application/vnd.trainmark.challenge.v1+json"
CHALLENGE_REQUEST_PAYLOAD_TYPE = "application/vnd.trainmark.challenge-request.v1+json"
KEY_EVENTS = ("enroll", "rotate", "revoke")

# Names of owners.
Label = Annotated[str, StringConstraints(min_length=1, max_length=80), Named, Normal]


class Rotation(Wire):
    """A new key replaces an old one; signed by the old key, then by the new one."""

    event: Literal["rotate"]
    public_key: Annotated[str, StringConstraints(max_length=200)]
    supersedes: Sha256
    server_origin: Text
    at: UtcTime


class Revocation(Wire):
    """The end of a key; signed by itself, by another key of its owner, or by the operator.
    ``compromised_since_log_index``: its results from this entry on lose their rank; None if the key
    was only retired.
    """

    event: Literal["revoke"]
    key_id: Sha256
    reason: Text
    compromised_since_log_index: Count | None = None
    server_origin: Text
    at: UtcTime


OwnAct = Literal["hide", "show", "withdraw", "list", "export"]
OperatorAct = Literal[
    "flag", "quarantine", "restore", "withdraw", "approve", "assign", "confirm", "doubt", "locate"
]
OWN_ACTS: tuple[OwnAct, ...] = get_args(OwnAct)
OPERATOR_ACTS: tuple[OperatorAct, ...] = get_args(OperatorAct)
# Acts of a machine's key that only read; they are not logged.
READING_ACTS: tuple[OwnAct, ...] = ("list", "export")
ABOUT_OWNERS: tuple[OperatorAct, ...] = ("confirm", "doubt", "locate")
# An owner's area is one of this number of groups of networks.
AREAS = 256


class Act(Wire):
    """An act of a machine's key on its own results, or of the operator on any.

    A key may ``hide``, ``show``, ``withdraw`` a ``result``, ``list`` and ``export``. The operator
    may ``flag``, ``quarantine`` and ``restore`` a ``result`` for a ``reason``, ``withdraw`` one,
    ``approve`` a ``key``, ``assign`` a ``key`` to an ``owner``, ``confirm`` or ``doubt`` an
    ``owner``, and ``locate`` one in an ``area``.
    """

    act: OwnAct | OperatorAct
    id: RunId
    key_id: Sha256
    server_origin: Text
    at: UtcTime
    result: ResultId | None = None
    key: Sha256 | None = None
    owner: Label | None = None
    area: Annotated[int, Field(ge=0, lt=AREAS)] | None = None
    reason: Text | None = None


class ChallengeIssued(Wire):
    """A server's nonce for one run of one key, and its expiry."""

    id: RunId
    nonce: Sha256
    key_id: Sha256
    server_origin: Text
    issued_at: UtcTime
    expires_at: UtcTime


class ChallengeRequest(Wire):
    """A key asks for a challenge for a run, under an id that it draws. Asking again with this id
    gives the same challenge. It is signed, because challenges without a result are counted."""

    id: RunId
    run_id: RunId
    key_id: Sha256
    server_origin: Text


def first_owner(key_id: str) -> str:
    """The initial owner of a key, for this key alone."""
    return f"key-{key_id[:12]}"


def payload(said: Wire) -> bytes:
    return strict_json.dumps(said.model_dump(mode="json"))


def event_kind(raw: bytes) -> str:
    """Which key event a payload is: ``enroll``, ``rotate`` or ``revoke``.

    Raises:
        MalformedJson: not strict JSON.
        InvalidField: the payload has no event, or an unknown one.
    """
    document: Any = strict_json.loads(raw)
    kind = document.get("event") if isinstance(document, dict) else None
    if kind not in KEY_EVENTS:
        raise InvalidField(
            f"event is {str(kind)[:40]!r}, expected one of: {', '.join(KEY_EVENTS)}",
            field="event",
            hint="name the key event in the payload",
        )
    return str(kind)
