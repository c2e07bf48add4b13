"""Optional evidence beside a result: beats, asks, probes of the machine, and attestations.

The wire format has room for them since version 2; each is left out where there is none.
"""

import base64
import hashlib
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from ..base.units import Count, Finite, OffsetNs, Sha256, Slug, Text, UtcTime, Wire
from .machine import Setting

RESULT_ID = r"^[0-9a-f]{16}$"
# Standard base64 of 64 bytes: its last character before the padding has four spare bits, zero.
SIGNATURE = r"^[A-Za-z0-9+/]{85}[AQgw]==$"
# One every ten seconds of an hour, and more.
MOST_BEATS = 400
Moment = Literal["begin", "during", "end"]


def _absent(value: object) -> bool:
    """Whether a member that later beats have is left out."""
    return value is None


class Beat(Wire):
    """One hash that the agent posted about a timed part, and the server's signed time.

    ``head``: what was posted (:mod:`.beats`). ``moment``: when timing began, during it, or when it
    ended. ``blocks``: how many blocks had been reported. ``sent_ns`` and ``answered_ns``: on the
    agent's clock, see ``Clocks``. ``at`` and ``signature``: the server's answer. ``beacon``: the
    SHA-256 of the signature, which nobody knew before. ``problem``: why there is no answer.
    """

    head: Sha256
    sent_ns: OffsetNs
    beacon: Sha256 | None = None
    answered_ns: OffsetNs | None = None
    moment: Moment = Field(default="begin", exclude_if=lambda value: value == "begin")
    blocks: Count = Field(default=0, exclude_if=lambda value: value == 0)
    at: UtcTime | None = Field(default=None, exclude_if=_absent)
    signature: Annotated[str, StringConstraints(pattern=SIGNATURE)] | None = Field(
        default=None, exclude_if=_absent
    )
    problem: Slug | None = Field(default=None, exclude_if=_absent)

    @model_validator(mode="after")
    def _a_whole_answer(self) -> "Beat":
        if self.signature is not None:
            if self.at is None or self.answered_ns is None or self.answered_ns < self.sent_ns:
                raise ValueError("a signature needs at, and answered_ns from sent_ns on")
            if self.beacon != beacon_of(self.signature):
                raise ValueError("beacon must be the SHA-256 of the signature's 64 bytes")
        return self


def beacon_of(signature: str) -> str:
    """SHA-256 of a signature in base64, lower-case hex."""
    return hashlib.sha256(base64.b64decode(signature)).hexdigest()


class Asked(Wire):
    """The server's ask that this result answers.

    ``root``: the log's root that it was drawn from. ``reason``: why the server wants the cell
    measured again. ``result``: the result to be reproduced, if it is one.
    """

    root: Sha256
    reason: Slug
    result: Annotated[str, StringConstraints(pattern=RESULT_ID)] | None = None


class DeviceProbe(Wire):
    """A small measurement of the machine beside the cell: its name and its figures."""

    name: Slug
    figures: dict[Slug, Finite | Setting] = Field(default={}, max_length=64)


class Attestation(Wire):
    """What a third party says about the machine or the moment, such as a cloud's identity
    document or a time stamp.

    ``digest``: SHA-256 of the document, which stays with the agent. ``facts``: what it says; never
    an account or an address.
    """

    kind: Slug
    digest: Sha256
    issuer: Text | None = None
    facts: dict[Slug, Setting] = Field(default={}, max_length=32)
