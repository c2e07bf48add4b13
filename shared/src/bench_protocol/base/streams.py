"""The standard streams of both programs: no character, no width and no lost reader ends a command.

A stream that is closed reads and writes nothing. What cannot be written is dropped, and the
command goes on: a measurement is worth more than its progress. What was lost is said at the end.
"""

import errno
import io
import os
import select
import sys
from contextlib import suppress
from typing import Any

READER_GONE = (errno.EPIPE, errno.ECONNRESET)
LARGEST_WIDTH = 10_000


class _Descriptor(io.FileIO):
    """An open file that accepts everything. ``lost``: why something was not written."""

    lost: OSError | None = None

    def write(self, data: Any) -> int:
        while True:
            try:
                written = super().write(data)
            except OSError as error:
                self.lost = self.lost or error
                return len(memoryview(data).cast("B"))
            if written is not None:
                return written
            select.select([], [self], [])  # another program made it non-blocking


def open_all() -> None:
    """Make the standard streams safe, and forget a width that is none."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # else the next file that is opened would become this stream
            os.open(os.devnull, os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, closefd=False)
    for number, name in ((1, "stdout"), (2, "stderr")):
        setattr(sys, name, _safe(getattr(sys, name), number))
    for name in ("COLUMNS", "LINES"):
        if not _is_width(os.environ.get(name, "1")):
            del os.environ[name]


def _safe(stream: Any, number: int) -> Any:
    if stream is not None and stream is not (sys.__stdout__, sys.__stderr__)[number - 1]:
        with suppress(AttributeError, OSError, ValueError):  # of a test
            stream.reconfigure(errors="replace")
        return stream
    encoding = getattr(stream, "encoding", None)
    raw = _Descriptor(number, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors="replace", line_buffering=raw.isatty()
    )


def _is_width(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) < LARGEST_WIDTH


def loss() -> str | None:
    """Why standard output is not complete; None if it is, or if its reader is gone."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    lost = getattr(raw, "lost", None)
    return None if lost is None or lost.errno in READER_GONE else lost.strerror
