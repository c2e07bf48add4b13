"""Optional evidence beside a result: asks, probes of the machine, and attestations."""

from typing import Annotated

from pydantic import Field, StringConstraints

from ..base.units import Finite, Sha256, Slug, Text, Wire
from .machine import Setting

RESULT_ID = r"^[0-9a-f]{16}$"


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
