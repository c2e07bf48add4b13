"""Run lock: one run at a time. Two would slow each other and overwrite each other's journal."""

from collections.abc import Iterator
from contextlib import contextmanager

from ..base.errors import HomeProblem, UsageProblem
from ..base.home import Home, private_folder


@contextmanager
def alone(home: Home) -> Iterator[None]:
    """Hold the folder's lock inside the block. The system releases it when a process is killed.

    Raises:
        UsageProblem: another run holds it.
        HomeProblem: the folder cannot be written.
    """
    import fcntl  # not on Windows, where no run gets here

    path = private_folder(home.root) / "run.lock"
    try:
        lock = path.open("w")
    except OSError as error:
        raise HomeProblem(f"cannot write {path}: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageProblem(
                f"another run is going on with {home.root}: wait for it, since the two would slow "
                "each other down"
            ) from error
        yield
