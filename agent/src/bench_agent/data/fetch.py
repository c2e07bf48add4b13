"""Download a data set's files from their mirrors.

A download is written to ``NAME.partial`` beside its target and renamed once size and SHA-256 match.
An interrupted download continues where it stopped.
"""

import os
from pathlib import Path

import httpx

from bench_protocol.real_data import files
from bench_protocol.real_data.manifest import DataFile

from ..base.errors import DataProblem
from ..base.home import sync_folder
from ..remote.http_client import open_http

TIMEOUT = httpx.Timeout(30.0, connect=15.0)


class _MirrorFailed(Exception):
    """This mirror did not deliver the file."""


def open_client(timeout: httpx.Timeout = TIMEOUT) -> httpx.Client:
    """An HTTP client for mirrors: it follows redirects and refuses compression.

    Raises:
        UsageProblem: the system's proxies or certificates cannot be used.
    """
    headers = {"Accept-Encoding": "identity"}
    return open_http(timeout=timeout, follow_redirects=True, headers=headers)


def fetch(file: DataFile, folder: Path, client: httpx.Client) -> Path:
    """Download one file into the data folder, from the first mirror that delivers it intact.

    Raises:
        DataProblem: no mirror delivered it, or it cannot be written; the partial file stays.
    """
    target = folder / file.path
    partial = target.with_name(f"{target.name}.partial")
    failures: list[str] = []
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for mirror in file.mirrors:
            try:
                _from_mirror(mirror, file, partial, client)
            except _MirrorFailed as failure:
                failures.append(f"{mirror}: {failure}")
                continue
            partial.replace(target)
            sync_folder(target.parent)
            return target
    except (FileExistsError, NotADirectoryError) as error:
        raise DataProblem(
            f"{folder} is no folder, so nothing can be put into it; choose another with "
            "BENCH_DATA_DIR"
        ) from error
    except OSError as error:
        raise DataProblem(
            f"cannot write {partial}: {error.strerror}; free space there, or choose another folder "
            "with BENCH_DATA_DIR"
        ) from error
    raise DataProblem(
        f"no mirror gave {file.path}:\n  " + "\n  ".join(failures) + "\n"
        f"Try again (a download continues where it stopped), or save it as {target}"
    )


def _from_mirror(mirror: str, file: DataFile, partial: Path, client: httpx.Client) -> None:
    """Complete the partial file and verify it."""
    resumed = partial.exists()
    _download(mirror, file, partial, client)
    try:
        files.verified(file, partial)
    except DataProblem as problem:
        partial.unlink()
        if resumed:  # the rest of an earlier attempt may have been wrong
            return _from_mirror(mirror, file, partial, client)
        raise _MirrorFailed(str(problem)) from problem


def _download(mirror: str, file: DataFile, partial: Path, client: httpx.Client) -> None:
    """Stream until the file is complete; resume after a cut while each attempt adds bytes."""
    while (here := _size(partial)) != file.size_bytes:
        if here > file.size_bytes:
            partial.unlink()
            here = 0
        reason = ""
        try:
            _stream(mirror, file, partial, here, client)
        except httpx.HTTPError as error:
            first_line = str(error).partition("\n")[0]
            reason = f": {first_line or type(error).__name__}"
        if (now := _size(partial)) <= here:
            raise _MirrorFailed(f"{now:,} of {file.size_bytes:,} bytes came{reason}")


def _stream(mirror: str, file: DataFile, partial: Path, here: int, client: httpx.Client) -> None:
    """Send one request. Append to the ``here`` bytes on disk if the server supports ranges, else
    start again."""
    headers = {"Range": f"bytes={here}-"} if here else {}
    with client.stream("GET", mirror, headers=headers) as answer:
        if answer.status_code not in (200, 206):
            raise _MirrorFailed(f"answered {answer.status_code}")
        goes_on = answer.headers.get("Content-Range", "").startswith(f"bytes {here}-")
        if answer.status_code == 206 and not goes_on:
            raise _MirrorFailed("sent another part of the file than was asked for")
        done = here if answer.status_code == 206 else 0
        with partial.open("ab" if done else "wb") as out:
            for chunk in answer.iter_raw():
                done += len(chunk)
                if done > file.size_bytes:
                    raise _MirrorFailed(f"sends more than {file.size_bytes:,} bytes")
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
