"""Find a data set's files in folders and verify their contents."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..base.errors import DataProblem
from .manifest import DataFile, RealData


def locate(file: DataFile, places: Sequence[Path]) -> Path | None:
    """The first file of that name and size; its content is not read."""
    return next(
        (path for path in _candidates(file, places) if _size(path) == file.size_bytes), None
    )


def stamps(data: RealData, places: Sequence[Path]) -> tuple[str, ...]:
    """Size and time of change of each path that a file may have, or why they cannot be read; empty
    where nothing is. They differ after a change; no content is read."""
    return tuple(_stamp(path) for file in data.files for path in _candidates(file, places))


def contents(data: RealData, places: Sequence[Path]) -> list[bytes]:
    """The files' contents, in order; size and SHA-256 were checked.

    Raises:
        DataProblem: a file is missing, wrong or cannot be read.
    """
    return [_content(data, file, places) for file in data.files]


def _content(data: RealData, file: DataFile, places: Sequence[Path]) -> bytes:
    wrong: list[str] = []
    for path in _candidates(file, places):
        try:
            return verified(file, path)
        except FileNotFoundError:
            continue
        except OSError as error:
            wrong.append(f"{path} cannot be read: {error.strerror}")
        except DataProblem as problem:
            wrong.append(str(problem))
    raise DataProblem("; ".join(wrong) or f"{data.name} is not on this machine")


def verified(file: DataFile, path: Path) -> bytes:
    """A file's content, if its size and SHA-256 are those of the manifest.

    Raises:
        DataProblem: size or SHA-256 differ.
        OSError: it cannot be read.
    """
    size = path.stat().st_size
    if size != file.size_bytes:
        raise DataProblem(f"{path} has {size:,} bytes instead of {file.size_bytes:,}")
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.sha256:
        raise DataProblem(f"{path} has SHA-256 {digest} instead of {file.sha256}")
    return content


def _candidates(file: DataFile, places: Sequence[Path]) -> Iterator[Path]:
    for place in places:
        for name in (file.path, *file.other_paths):
            yield place / name


def _stamp(path: Path) -> str:
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return error.strerror or type(error).__name__
    return f"{status.st_size} {status.st_mtime_ns}"


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
