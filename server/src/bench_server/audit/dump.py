"""Dump of a log: everything that an audit fetches, in one file, so that the audit can be repeated
without the server. A ZIP file whose members are named by their addresses.
"""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .chunks import Fetch

# Errors of a wrong checksum, broken compression, an unknown method, a password, an early end.
DAMAGED = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError)

GIVE = "bench-server verify-log ADDRESS --save FILE makes a dump"


class NoDump(ValueError):
    """The file is not a dump; the message says why."""


@contextmanager
def keeping(fetch: Fetch, file: Path) -> Iterator[Fetch]:
    """Fetch, and store every answer in a file. The file appears when the block ends without error.

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
    """Fetch from a dump instead of a server.

    Raises:
        NoDump: the file is not a dump.
    """
    try:
        archive = zipfile.ZipFile(file)
    except OSError as error:
        raise NoDump(f"{file} cannot be read ({error.strerror}); {GIVE}") from None
    except zipfile.BadZipFile as error:
        raise NoDump(f"{file} is not a dump of a log ({error}); {GIVE}") from None

    def fetch(path: str) -> bytes:
        try:
            return archive.read(path)
        except KeyError:
            raise NoDump(f"{file} is incomplete: it lacks {path}") from None
        except DAMAGED as error:
            raise NoDump(f"{file} is damaged at {path}: {error}; obtain it again") from None

    with archive:
        yield fetch
