"""Check the agent's folder, its key, free space, and data sets."""

import errno
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bench_protocol.base import format as people

from .finding import Finding

NEEDED_BYTES = 200 * 2**20
COMFORTABLE_BYTES = 2 * 2**30


@dataclass(frozen=True)
class Folder:
    """The agent's folder. ``problem``: why it is not writable; ``elsewhere``: a folder that is."""

    path: Path
    problem: str | None
    exists: bool
    owned: bool
    elsewhere: Path | None


@dataclass(frozen=True)
class Secret:
    """A private file or its folder: permission bits, whether this user owns it, and what is wrong
    with its content."""

    path: Path
    mode: int
    owned: bool
    problem: str | None = None
    is_folder: bool = False

    @property
    def right_mode(self) -> int:
        return 0o700 if self.is_folder else 0o600


@dataclass(frozen=True)
class DataSet:
    """A data set: its missing files, their folder, and the address of one of them."""

    name: str
    missing: tuple[str, ...]
    folder: Path
    url: str


def check_home(folder: Folder) -> Iterator[Finding]:
    """Check that the agent's folder can be written: it holds keys, outbox and logs."""
    if folder.problem is None:
        yield Finding("home", "ok", f"{folder.path} can be written")
        return
    path = shlex.quote(str(folder.path))
    if folder.exists and folder.owned and folder.problem == os.strerror(errno.EACCES):
        hint: str | None = f"chmod -R u+rwX {path}"
    elif folder.elsewhere:
        hint = f"export BENCH_HOME={shlex.quote(str(folder.elsewhere))}"
    else:
        hint = f'sudo mkdir -p {path} && sudo chown -R "$(id -un)" {path}'
    yield Finding(
        "home",
        "fail",
        f"{folder.path} cannot be written ({folder.problem}): no result can be stored",
        hint,
    )


def check_keys(secrets: Sequence[Secret]) -> Iterator[Finding]:
    """Check that only their owner can read the signing key and the salt."""
    if not secrets:
        yield Finding("keys", "ok", "no key yet; the first run makes one")
        return
    sound = True
    for secret in secrets:
        path = shlex.quote(str(secret.path))
        chmod = f"chmod {secret.right_mode:o} {path}"
        if not secret.owned:
            sentence = f"{secret.path} belongs to another user"
            hint = f'sudo chown "$(id -un)" {path} && {chmod}'
        elif secret.mode & 0o077:
            sentence = f"{secret.path} is open to others (mode {secret.mode:o})"
            hint = chmod
        elif not secret.mode & 0o400:
            sentence = f"{secret.path} cannot be read (mode {secret.mode:o})"
            hint = chmod
        elif secret.problem:
            sentence = f"{secret.path} {secret.problem}; the next run makes a new one"
            hint = f"mv {path} {shlex.quote(str(secret.path) + '.broken')}"
        else:
            continue
        sound = False
        yield Finding(f"keys.{secret.path.stem}", "fail", sentence, hint)
    if sound:
        yield Finding("keys", "ok", "key and salt are for their owner only")


def check_disk(
    path: Path, free_bytes: int | None, logs_bytes: int, logs: Path
) -> Iterator[Finding]:
    """Check free space for results, logs and compiled kernels.

    Args:
        path: where the free space was measured.
        logs_bytes: size of the agent's own logs.
    """
    if free_bytes is None:
        yield Finding("disk", "skip", f"free space at {path} is unknown")
        return
    free_words = f"{people.size(free_bytes)} free at {path}"
    if free_bytes >= COMFORTABLE_BYTES:
        yield Finding("disk", "ok", free_words)
        return
    hint = (
        f"rm -r {shlex.quote(str(logs))}"
        if logs_bytes > NEEDED_BYTES
        else f"delete large files below {path}"
    )
    verdict = "fail" if free_bytes < NEEDED_BYTES else "warn"
    yield Finding("disk", verdict, f"only {free_words}", hint)  # type: ignore[arg-type]


def check_data(sets: Sequence[DataSet], reachable: Mapping[str, bool]) -> Iterator[Finding]:
    """Check that real data is on this machine or can be downloaded. Generated data needs neither.

    Args:
        reachable: whether a mirror answers, for each data set with missing files.
    """
    away: list[DataSet] = []
    for item in sets:
        if not item.missing:
            yield Finding(f"data.{item.name}", "ok", f"{item.name} is here")
        elif reachable.get(item.name):
            sentence = f"{item.name} is not here yet, and its mirror answers"
            hint = f"bench-agent data fetch {item.name}"
            yield Finding(f"data.{item.name}", "ok", sentence, hint)
        else:
            away.append(item)
    if away:
        names = ", ".join(item.name for item in away)
        hosts = ", ".join(dict.fromkeys(urlsplit(item.url).netloc for item in away))
        yield Finding(
            "data",
            "warn",
            f"{names} cannot be downloaded: tried {hosts}, and got no file",
            "bench-agent run --preset smoke --data generated",
        )
