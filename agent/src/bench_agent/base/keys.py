"""This machine's signing key and the salt of its hash: made once, stored in files of mode 0600."""

import hashlib
import hmac
import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from bench_protocol.signing.keys import key_id

from .errors import HomeProblem
from .home import Home, read_or_make_private

SALT_BYTES = 32


def load_or_create_key(home: Home) -> Ed25519PrivateKey:
    """The machine's Ed25519 key; the first call makes it.

    Raises:
        HomeProblem: the file is open to others, is not such a key, or cannot be written.
    """
    return _load_or_create(home.key)


def own_key(home: Home) -> Ed25519PrivateKey | None:
    """The machine's key, or None if none was made yet. Raises as :func:`load_or_create_key`."""
    return load_or_create_key(home) if home.key.exists() else None


def next_key(home: Home) -> Ed25519PrivateKey:
    """The new key of a rotation. It stays the same until :func:`take_next_key`, so that a rotation
    which only some servers have seen can continue. Raises as :func:`load_or_create_key`."""
    return _load_or_create(_next(home))


def take_next_key(home: Home) -> None:
    """Make the next key the machine's key. The old key is deleted."""
    _next(home).replace(home.key)


def put_key_away(home: Home) -> Path:
    """Rename the machine's key to the returned path, so that the next call makes a new one.

    Raises:
        FileNotFoundError: the machine has no key.
    """
    old = own_key(home)
    if old is None:
        raise FileNotFoundError(home.key)
    away = home.key.with_name(f"{key_id(old.public_key())[:16]}.pem")
    home.key.replace(away)
    _next(home).unlink(missing_ok=True)
    return away


def _next(home: Home) -> Path:
    return home.key.with_suffix(".next.pem")


def _load_or_create(path: Path) -> Ed25519PrivateKey:
    try:
        loaded = load_pem_private_key(read_or_make_private(path, _new_key), password=None)
    except ValueError as error:
        raise HomeProblem(f"{path} is not a PEM private key: {error}") from error
    if not isinstance(loaded, Ed25519PrivateKey):
        raise HomeProblem(f"{path} is not an Ed25519 key")
    return loaded


def _new_key() -> bytes:
    key = Ed25519PrivateKey.generate()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def machine_hash(home: Home, identifier: bytes) -> str:
    """HMAC-SHA256 of the machine's identifier under a salt that never leaves it, in hex."""
    salt = read_or_make_private(home.salt, lambda: os.urandom(SALT_BYTES))
    return hmac.new(salt, identifier, hashlib.sha256).hexdigest()
