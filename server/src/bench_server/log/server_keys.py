"""The server's own keys: one signs the log, one challenges, one the operator's acts.

They are files beside the database and never in it, so write access to the database is not enough to
sign a checkpoint or an act.
"""

import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from bench_protocol.signing import keys
from bench_protocol.signing.note import NoteKey, note_key

NAMES = ("log", "challenge", "operator")


class KeysProblem(RuntimeError):
    """The server's keys cannot be used; the message says how to fix it."""


@dataclass(frozen=True)
class Identity:
    """The public part of a server: its name, and the keys that verify its signatures."""

    origin: str
    challenge: Ed25519PublicKey
    operator: Ed25519PublicKey

    @property
    def operator_key_id(self) -> str:
        return keys.key_id(self.operator)


@dataclass(frozen=True)
class Authority:
    """The name under which this server signs, and its three keys."""

    origin: str
    log: Ed25519PrivateKey
    challenge: Ed25519PrivateKey
    operator: Ed25519PrivateKey

    @property
    def log_key(self) -> NoteKey:
        """The key that verifies the log's checkpoints."""
        return note_key(self.origin, self.log)

    @property
    def identity(self) -> Identity:
        return Identity(self.origin, self.challenge.public_key(), self.operator.public_key())


def load_authority(origin: str, folder: Path) -> Authority:
    """Read the keys. The first start makes them with mode 0600 in a folder of mode 0700, the log's
    last: where it is, one that is missing was lost, and another one would not verify the past.

    Raises:
        KeysProblem: others may read them, one is missing, or they cannot be read or made.
    """
    paths = {name: folder / f"{name}.pem" for name in NAMES}
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not paths["log"].exists():
            for name in reversed(NAMES):
                _make(paths[name])
        return Authority(origin, *map(_load, paths.values()))
    except OSError as error:
        raise KeysProblem(
            f"cannot use {error.filename}: {error.strerror}; choose another folder with "
            "BENCH_SERVER_KEYS_DIR"
        ) from None


def _make(path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    # The file appears complete: another server may start on this folder at the same time.
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name) as file:  # mode 0600
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        file.flush()
        os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(file.name, path)


def _load(path: Path) -> Ed25519PrivateKey:
    if not path.exists():
        raise KeysProblem(f"{path} is missing; restore it from your copy of the keys (keys.tar)")
    for place in (path, path.parent):
        mode = stat.S_IMODE(place.stat().st_mode)
        if os.name == "posix" and mode & 0o077:
            raise KeysProblem(f"{place} is open to others (mode {mode:o}): chmod go= {place}")
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except ValueError as error:
        raise KeysProblem(f"{path} is not a PEM private key: {error}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeysProblem(f"{path} is not an Ed25519 key")
    return key
