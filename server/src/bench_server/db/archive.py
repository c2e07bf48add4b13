"""Payloads outside of the database: in any storage that fsspec knows, one object a payload, named
by its digest.

The payload's column then holds the object's address after :data:`MARK`, with which no JSON begins.
Reading the column returns the payload, verified.
"""

import hashlib
import os
import re
from pathlib import Path
from typing import Any

from sqlalchemy import Dialect, LargeBinary, TypeDecorator

from .. import extras

MARK = b"\0archived "
MISSING = extras.install("archive")


class ArchiveProblem(OSError):
    """An object cannot be stored or read, or it is not the payload; the message names it."""


class Payload(TypeDecorator[bytes]):
    """A payload in the database or in an archive; reading gives its bytes.

    It raises:
        ArchiveProblem: the archive does not give the payload.
    """

    impl = LargeBinary
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> bytes | None:
        """The payload."""
        address = address_in(value)
        return value if address is None else get(address)


def address_in(stored: bytes | None) -> str | None:
    """The address that a column holds; None if it holds the payload itself, or nothing."""
    if stored is None or not stored.startswith(MARK):
        return None
    return stored.removeprefix(MARK).decode()


def address_of(to: str, digest: str) -> str:
    """The address of a payload in an archive.

    Args:
        digest: SHA-256 of the payload in hex digits.
    """
    return f"{to.rstrip('/')}/{digest[:2]}/{digest}"


def put(to: str, payload: bytes) -> bytes:
    """Store a payload and read it back.

    Args:
        to: address of the archive, such as ``s3://bucket/payloads``.

    Returns:
        What the column holds from now on.

    Raises:
        ArchiveProblem: it is not stored.
    """
    address = address_of(to, hashlib.sha256(payload).hexdigest())
    files, path = _opened(address)
    try:
        _write(files, path, payload)
        if "file" in files.protocol:
            _sync(path)
    except Exception as error:  # each storage has errors of its own
        raise ArchiveProblem(f"{address} cannot be written: {error}") from error
    get(address)
    return MARK + address.encode()


def get(address: str) -> bytes:
    """The payload at an address, whose last part is its digest.

    Raises:
        ArchiveProblem: it cannot be read, or is something else.
    """
    files, path = _opened(address)
    try:
        payload: bytes = files.cat_file(path)
    except Exception as error:
        raise ArchiveProblem(f"{address} cannot be read: {error}") from error
    if hashlib.sha256(payload).hexdigest() != address.rpartition("/")[2]:
        raise ArchiveProblem(f"{address} is not the payload of this digest")
    return payload


def remove(address: str) -> bool:
    """Erase an object.

    Returns:
        Whether there was one.

    Raises:
        ArchiveProblem: it cannot be erased.
    """
    files, path = _opened(address)
    try:
        # Object storage accepts that an absent object is erased.
        if not files.exists(path):
            return False
        files.rm_file(path)
    except FileNotFoundError:
        return False
    except Exception as error:
        raise ArchiveProblem(f"{address} cannot be erased: {error}") from error
    return True


def _opened(address: str) -> tuple[Any, str]:
    if not re.match(r"[a-z0-9]+://", address):
        raise ArchiveProblem(f"{address} is no address; write file:///FOLDER or s3://BUCKET/FOLDER")
    try:
        from fsspec.core import url_to_fs  # here: only archives need it
    except ImportError:
        raise ArchiveProblem(f"{address} needs fsspec; {MISSING}") from None
    try:
        files, path = url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise ArchiveProblem(f"{address} cannot be used: {error}") from error
    return files, path


def _write(files: Any, path: str, payload: bytes) -> None:
    try:
        files.pipe_file(path, payload)
    except FileNotFoundError:
        # A folder is made, a bucket is not: its name may be wrong.
        if "file" not in files.protocol and not files.exists(path[: path.find("/", 1)]):
            raise
        files.makedirs(path.rpartition("/")[0], exist_ok=True)
        files.pipe_file(path, payload)


def _sync(path: str) -> None:
    """Wait until a file and its entry in the folder are on disk."""
    for place in (Path(path), Path(path).parent):
        descriptor = os.open(place, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
