"""A disk that fills up, and a fake one: which written files would survive a power cut."""

import fcntl
import os
import resource
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock


@contextmanager
def full_disk(left_bytes: int) -> Iterator[None]:
    """The kernel lets no file grow beyond a few bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (left_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def path_of(descriptor: int) -> Path:
    if sys.platform == "darwin":
        name = fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024))
        return Path(os.fsdecode(name.rstrip(b"\0")))
    return Path(f"/proc/self/fd/{descriptor}").readlink()


class Disk:
    """Watches ``os.fsync``: content is durable after its own sync, a name after its folder's."""

    def __init__(self) -> None:
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}

    @contextmanager
    def watched(self) -> Iterator["Disk"]:
        sync = os.fsync

        def noted(descriptor: int) -> None:
            sync(descriptor)
            self._note(descriptor)

        with mock.patch("os.fsync", noted):
            yield self

    def left_of(self, folder: Path, target: Path) -> None:
        """Copy a folder elsewhere as a power cut now would leave it."""
        self._restore(folder.stat().st_ino, target)

    def _note(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        path = path_of(descriptor)
        if stat.S_ISDIR(status.st_mode):
            with os.scandir(path) as entries:
                self._names[status.st_ino] = {entry.name: entry.inode() for entry in entries}
        else:
            self._contents[status.st_ino] = path.read_bytes()

    def _restore(self, inode: int, target: Path) -> None:
        target.mkdir(mode=0o700)
        for name, item in self._names.get(inode, {}).items():
            path = target / name
            if item in self._contents:
                path.write_bytes(self._contents[item])
                path.chmod(0o600)
            elif item in self._names:
                self._restore(item, path)
            else:
                path.touch()
