"""Check the agent's folder and key, free space, data sets, the server and its clock. What is absent
is no error."""

import errno
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import platformdirs
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from bench_protocol.base import format as people
from bench_protocol.real_data import files
from bench_protocol.real_data.manifest import MANIFEST

from ..base.errors import UsageProblem
from ..base.home import Home
from ..data import sources
from ..machine.text import text_or_none
from ..remote.connection import http_date, trusted
from .finding import Finding, fail, ok, skip, warn

NEEDED_BYTES = 200 * 2**20
COMFORTABLE_BYTES = 2 * 2**30
HOST_TIMEOUT_SECONDS = 5.0
TIMEOUT_SECONDS = 10.0
# The Date header has whole seconds, and an answer takes time.
CLOSE_SECONDS = 5.0
# A challenge is valid for minutes; a clock this far off cannot answer one.
FAR_SECONDS = 120.0


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
    """Another folder that can be the agent's."""
    user = environ.get("USER") or str(os.getuid() if hasattr(os, "getuid") else "me")
    candidates = (
        platformdirs.user_data_path("trainmark"),
        Path(environ.get("HOME") or "/nonexistent") / "trainmark",
        Path(tempfile.gettempdir()) / f"trainmark-{user}",
    )
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
    """Free bytes on the disk of a folder that exists or will be created."""
    for level in (path, *path.parents):
        with suppress(OSError):
            return shutil.disk_usage(level).free
    return None


def answers(url: str) -> bool:
    """Whether a host answers. Sends one request without data."""
    try:
        return httpx.head(url, timeout=HOST_TIMEOUT_SECONDS, follow_redirects=True).is_success
    except (httpx.HTTPError, httpx.InvalidURL):
        return False


def check_data(
    environ: Mapping[str, str], answers: Callable[[str], bool] = answers
) -> Iterator[Finding]:
    """Check that real data is on this machine or can be downloaded."""
    places = sources.folders(environ)
    away = []
    for real in MANIFEST:
        if not files.missing(real, places):
            yield ok(f"{real.name} is here", of=real.name)
        elif answers(real.files[0].mirrors[0]):
            sentence = f"{real.name} is not here yet, and its mirror answers"
            yield ok(sentence, f"bench-agent data fetch {real.name}", of=real.name)
        else:
            away.append(real)
    if away:
        names = ", ".join(real.name for real in away)
        hosts = ", ".join(dict.fromkeys(urlsplit(real.files[0].mirrors[0]).netloc for real in away))
        sentence = f"{names} cannot be downloaded: tried {hosts}, and got no file"
        yield warn(sentence, "bench-agent run --preset smoke --data generated")


def _owned(path: Path) -> bool:
    if not hasattr(os, "getuid"):
        return True
    with suppress(OSError):
        return path.stat().st_uid == os.getuid()
    return False


@dataclass(frozen=True)
class ServerAnswer:
    """``problem``: why there is no answer. ``offset_seconds``: this clock minus the server's."""

    url: str
    status: int | None = None
    offset_seconds: float | None = None
    problem: str | None = None


def ask_server(url: str) -> ServerAnswer:
    """Send one request, and compute the difference of the clocks."""
    before = datetime.now(UTC)
    try:
        answer = httpx.get(f"{url.rstrip('/')}/healthz", timeout=TIMEOUT_SECONDS, verify=trusted())
    except (httpx.HTTPError, httpx.InvalidURL, UsageProblem) as error:
        return ServerAnswer(url, problem=text_or_none(str(error)) or type(error).__name__)
    offset = offset_seconds(answer.headers.get("Date"), before, datetime.now(UTC))
    return ServerAnswer(url, status=answer.status_code, offset_seconds=offset)


def offset_seconds(date: str | None, before: datetime, after: datetime) -> float | None:
    """Seconds that this clock is ahead of a Date header; None for an unreadable one.

    Args:
        before, after: this clock when the request was sent and when its answer came.
    """
    theirs = http_date(date or "")
    if theirs is None:
        return None
    middle = before + (after - before) / 2
    # The header was cut to whole seconds: half a second on average.
    return (middle - theirs).total_seconds() - 0.5


def check_server(answer: ServerAnswer | None) -> Iterator[Finding]:
    """Check that the server answers. No server is fine: nothing is sent."""
    if answer is None:
        yield skip("no server was named; nothing is sent")
    elif answer.problem:
        kept = "results stay in the outbox, to be sent later"
        later = f"bench-agent submit --server {shlex.quote(answer.url)}"
        yield fail(f"{answer.url} does not answer ({answer.problem}); {kept}", later)
    elif answer.status != 200:
        what = "not a Trainmark server, or a broken one"
        hint = "correct the address of --server"
        yield fail(f"{answer.url} answers {answer.status}: {what}", hint)
    else:
        yield ok(f"{answer.url} answers")


def check_clock(answer: ServerAnswer | None, system: str) -> Iterator[Finding]:
    """Results are bound to a challenge by time: a wrong clock lowers their trust level."""
    if answer is None or answer.offset_seconds is None:
        yield skip("no server's clock to compare with")
        return
    offset = answer.offset_seconds
    direction = "ahead of" if offset > 0 else "behind"
    sentence = f"this clock is {abs(offset):.0f} s {direction} the server's"
    mac = system == "Darwin"
    hint = "sudo sntp -sS time.apple.com" if mac else "sudo timedatectl set-ntp true"
    if abs(offset) > FAR_SECONDS:
        yield fail(sentence, hint)
    elif abs(offset) > CLOSE_SECONDS:
        yield warn(sentence, hint)
    else:
        yield ok("this clock agrees with the server's")
