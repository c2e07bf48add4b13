"""A dump of a log: all that an audit of it fetches, in one file, so that anyone can repeat the
audit without the server. A ZIP file whose members are named by the addresses they were at.
"""

import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Fetch = Callable[[str], bytes]


class NoDump(ValueError):
    """The file is not such a dump; the message says why."""


@contextmanager
def keeping(fetch: Fetch, file: Path) -> Iterator[Fetch]:
    """Fetch as before, and keep all of it in a file, which is there once all went well.

    Raises:
        OSError: the file cannot be written.
    """
    partial = file.with_name(f".{file.name}.partial")
    written: set[str] = set()
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:

            def fetch_and_store(path: str) -> bytes:
                content = fetch(path)
                if path not in written:
                    archive.writestr(path, content)
                    written.add(path)
                return content

            yield fetch_and_store
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def reading(file: Path) -> Iterator[Fetch]:
    """Fetch from a dump.

    Raises:
        NoDump: it is none.
    """
    try:
        archive = zipfile.ZipFile(file)
    except (OSError, zipfile.BadZipFile) as error:
        raise NoDump(f"{file} is no dump of a log: {error}") from None

    def fetch(path: str) -> bytes:
        try:
            return archive.read(path)
        except KeyError:
            raise NoDump(f"{file} has nothing that was at {path}") from None

    with archive:
        yield fetch
