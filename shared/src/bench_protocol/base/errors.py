"""Errors of the protocol, each with the problem, the field and the remedy; and of data sets."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # help of a command line imports this module, and no pydantic
    from pydantic import ValidationError


class ProtocolError(ValueError):
    """A document or request breaks the protocol.

    Args:
        detail: the problem, with the exceeded limit if there is one.
        field: path of the offending field, dots between levels (``predicate.cell.batch_size``).
        hint: the remedy for the sender.
    """

    code = "protocol_error"

    def __init__(self, detail: str, *, field: str = "", hint: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.field = field
        self.hint = hint


class MalformedJson(ProtocolError):
    """The bytes are not strict JSON."""

    code = "malformed_json"


class InvalidField(ProtocolError):
    """A field is missing, unknown, of the wrong type or outside its limits."""

    code = "invalid_field"


class InvalidEnvelope(ProtocolError):
    """The envelope's form is wrong (not its signature)."""

    code = "invalid_envelope"


class WrongPayloadType(ProtocolError):
    """The envelope carries another kind of payload than the one expected here."""

    code = "wrong_payload_type"


class BadSignature(ProtocolError):
    """The signature does not belong to these bytes and this key."""

    code = "bad_signature"


class UnknownKey(ProtocolError):
    """No key with this id is enrolled."""

    code = "unknown_key"


class UnacceptableKey(ProtocolError):
    """Signatures of this public key prove nothing."""

    code = "unacceptable_key"


class UnknownWorkload(ProtocolError):
    """No workload of the catalogue has this name and digest."""

    code = "unknown_workload"


class InvalidProof(ProtocolError):
    """A checkpoint, a proof or a tile of the log does not show what it should."""

    code = "invalid_proof"


class DataProblem(Exception):
    """A data set is missing, wrong or cannot be downloaded; the message says how to fix it."""


# Parts of pydantic's error paths that are not in the document.
UNION_MEMBERS = ("measured", "failed", "float", "constrained-str", "function-after[", "[key]")


def first_invalid_field(error: "ValidationError") -> InvalidField:
    """Convert pydantic's report into one error that names the first field and its limit."""
    first = error.errors(include_url=False, include_input=False)[0]
    # An unknown field's name comes from the sender: shorten it.
    parts = (str(part)[:100] for part in first["loc"])
    kept = (part for part in parts if not part.startswith(UNION_MEMBERS))
    field = ".".join(part if part.isprintable() else ascii(part) for part in kept) or "body"
    more = error.error_count() - 1
    others = f" (and {more} more)" if more else ""
    return InvalidField(
        f"{field}: {first['msg']}{others}",
        field=field,
        hint="correct the field; docs/protocol.md lists every field with its limits",
    )
