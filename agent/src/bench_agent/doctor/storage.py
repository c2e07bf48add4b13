"""Check the agent's folder and key, and free space. What is absent is no error."""

import errno
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from bench_protocol.base import format as people

from ..base.errors import HomeProblem
from ..base.home import Home, user_folder
from .finding import Finding, fail, ok, skip, warn

NEEDED_BYTES = 200 * 2**20
COMFORTABLE_BYTES = 2 * 2**30


def why_not_writable(path: Path) -> str | None:
    """Why a file cannot be created in a folder, or None. A missing folder is created and removed
    again."""
    try:
        made = [level for level in (path, *path.parents) if not level.exists()]
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=path) as file:
                file.write(b"doctor")
        finally:
            for level in made:
                with suppress(OSError):
                    level.rmdir()
    except OSError as error:
        return error.strerror or type(error).__name__
    return None


def check_home(path: Path, problem: str | None, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Check that the agent's folder can be written; ``problem``: why it cannot, or None."""
    if problem is None:
        yield ok(f"{path} can be written")
        return
    quoted = shlex.quote(str(path))
    if problem == os.strerror(errno.EACCES) and _owned(path):
        hint = f"chmod -R u+rwX {quoted}"
    elif elsewhere := _writable_folder(path, environ):
        hint = f"export BENCH_HOME={shlex.quote(str(elsewhere))}"
    else:
        hint = f'sudo mkdir -p {quoted} && sudo chown -R "$(id -un)" {quoted}'
    yield fail(f"{path} cannot be written ({problem}): no result can be stored", hint)


def _writable_folder(path: Path, environ: Mapping[str, str]) -> Path | None:
    user = environ.get("USER") or str(os.getuid() if hasattr(os, "getuid") else "me")
    candidates = [Path(environ.get("HOME") or "/nonexistent") / "trainmark"]
    with suppress(HomeProblem):
        candidates.insert(0, user_folder())
    with suppress(OSError):  # there is no temporary folder
        candidates.append(Path(tempfile.gettempdir()) / f"trainmark-{user}")
    others = (place for place in candidates if place != path)
    return next((place for place in others if not why_not_writable(place)), None)


def check_keys(home: Home) -> Iterator[Finding]:
    """Check that only their owner can read the signing key and the salt."""
    modes: dict[Path, int] = {}
    for path in (home.key, home.salt, home.key.parent):
        with suppress(OSError):
            modes[path] = path.stat().st_mode & 0o777
    findings = [
        fail(*wrong, of=path.stem)
        for path, mode in modes.items()
        if (wrong := _wrong(path, mode, 0o700 if path == home.key.parent else 0o600))
    ]
    yield from findings
    if not modes:
        yield ok("no key yet; the first run makes one")
    elif not findings:
        yield ok("key and salt are for their owner only")


def _wrong(path: Path, mode: int, right: int) -> tuple[str, str] | None:
    """Report a private file or folder that others can read or that is unusable, with its fix."""
    quoted = shlex.quote(str(path))
    chmod = f"chmod {right:o} {quoted}"
    if not _owned(path):
        return f"{path} belongs to another user", f'sudo chown "$(id -un)" {quoted} && {chmod}'
    if mode & 0o077:
        return f"{path} is open to others (mode {mode:o})", chmod
    if not mode & 0o400:
        return f"{path} cannot be read (mode {mode:o})", chmod
    if problem := _key_problem(path):
        broken = shlex.quote(f"{path}.broken")
        return f"{path} {problem}; the next run makes a new one", f"mv {quoted} {broken}"
    return None


def _key_problem(path: Path) -> str | None:
    """Why a file is no signing key; None of the salt and of a folder."""
    if path.suffix != ".pem":
        return None
    try:
        loaded = load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "is not a PEM private key"
    return None if isinstance(loaded, Ed25519PrivateKey) else "is not an Ed25519 key"


def check_disk(path: Path, free: int | None) -> Iterator[Finding]:
    """Check free space (bytes, None if unknown) for results, logs and compiled kernels."""
    if free is None:
        yield skip(f"free space at {path} is unknown")
        return
    words = f"{people.size(free)} free at {path}"
    if free >= COMFORTABLE_BYTES:
        yield ok(words)
        return
    hint = f"delete large files on the disk of {path}"
    yield (fail if free < NEEDED_BYTES else warn)(f"only {words}", hint)


def free_bytes(path: Path) -> int | None:
    for level in (path, *path.parents):
        with suppress(OSError):
            return shutil.disk_usage(level).free
    return None


def _owned(path: Path) -> bool:
    if not hasattr(os, "getuid"):
        return True
    with suppress(OSError):
        return path.stat().st_uid == os.getuid()
    return False
