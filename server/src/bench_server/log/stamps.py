"""RFC 3161 time-stamps of checkpoints: a third party's word that the log had this size by then.

A stamp is asked for the signed note, as SHA-256, and verified before it is stored: a stamp that
does not lead to the configured certificates proves nothing. Needs the extra ``timestamps``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from .countersigning import Countersigned, NoCountersignature, Wanted
from .outgoing import NoAnswer, post

if TYPE_CHECKING:
    from cryptography.x509 import Certificate
    from rfc3161_client import TimeStampRequest

QUERY = "application/timestamp-query"


class NoStamp(ValueError):
    """The stamp proves nothing; the message says why."""


@dataclass(frozen=True)
class StampAuthority:
    """A time-stamp authority. ``certificates``: its roots, one or more."""

    url: str
    certificates: "tuple[Certificate, ...]"
    kind = "stamp"

    @property
    def name(self) -> str:
        return self.url

    def sign(self, wanted: Wanted) -> Countersigned:
        """Ask for a stamp.

        Raises:
            NoCountersignature: there is no answer, or it proves nothing.
        """
        from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

        request = (
            TimestampRequestBuilder()
            .data(wanted.note.encode())
            .hash_algorithm(HashAlgorithm.SHA256)
            .build()
        )
        try:
            answer = post(self.url, request.as_bytes(), QUERY)
            if answer.status != 200:
                raise NoCountersignature(f"{self.url} answered HTTP {answer.status}")
            at = verify(answer.body, wanted.note, self.certificates, request)
        except (NoAnswer, NoStamp) as error:
            raise NoCountersignature(str(error)) from None
        return Countersigned(answer.body, at)


def verify(
    response: bytes,
    note: str,
    certificates: "Sequence[Certificate]",
    request: "TimeStampRequest | None" = None,
) -> datetime:
    """Check a stamp of a note, without the note's cosignatures.

    Args:
        certificates: the roots that are trusted.
        request: what was asked, to compare its nonce and policy.

    Returns:
        The time of the stamp.

    Raises:
        NoStamp: it is malformed, of other bytes, not granted, or not signed under these roots.
    """
    from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response

    builder = VerifierBuilder() if request is None else VerifierBuilder.from_request(request)
    for certificate in certificates:
        builder = builder.add_root_certificate(certificate)
    try:
        stamp = decode_timestamp_response(response)
        builder.build().verify_message(stamp, note.encode())
        at: datetime = stamp.tst_info.gen_time
    except (VerificationError, ValueError) as error:
        raise NoStamp(f"its stamp proves nothing: {' '.join(str(error).split())}") from None
    return at


def read_certificates(path: Path) -> "tuple[Certificate, ...]":
    """Certificates of a PEM file.

    Raises:
        NoStamp: there are none.
    """
    from cryptography.x509 import load_pem_x509_certificates

    try:
        return tuple(load_pem_x509_certificates(path.read_bytes()))
    except OSError as error:
        raise NoStamp(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise NoStamp(f"{path} has no PEM certificates: {error}") from None
