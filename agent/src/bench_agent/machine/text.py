"""Read small files and commands that may be absent, and clean their text."""

import math
import re
import subprocess
from functools import cache
from pathlib import Path

from bench_protocol.base import names
from bench_protocol.base.units import LARGEST_INTEGER

from ..base.terminal import write_error

LONGEST_TEXT = 200
LONGEST_VERSION = 64
LARGEST_FILE_BYTES = 4 * 1024 * 1024
# Where the system's own commands are: a user's program of the same name is not run.
COMMANDS = "/usr/bin:/bin:/usr/sbin:/sbin"
# Letters of the languages that people write, and their punctuation; others become a space.
ODD = re.compile(r"[^\x20-\x7e\u00a0-\u024f\u0300-\u1fff\u3005-\u9fff\uac00-\ud7a3]+")
# What stands where nobody put a name: by a board's maker, by the machine type of a hypervisor.
PLACEHOLDER = re.compile(
    r"^\W*$|^(?:0x)?0+$|not ?(?:specified|applicable|available|provided|present)|unspecified"
    r"|unknown|undefined|\bfill(?:ed)?\b.*\bby\b|to be filled|default string|out of spec|o\.e\.m"
    r"|^system (?:product name|manufacturer|version|name)$"
    r"|^(?:none|n/?a|null|empty|other|oem|default|generic|invalid|xx+|product name)$"
    r"|^(?:pc|virt|microvm)(?:-[\w.]+)*$",
    re.IGNORECASE,
)
# Identifiers that no fact may contain.
IDENTIFYING = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"  # UUID
    r"|[0-9a-f]{8}-[0-9a-f]{16}"  # Apple's device identifier
    r"|\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b"  # address of a network card
    r"|[0-9a-f]{32,}"
    r"|[^\s@]+@[\w-]+\.[\w.-]+"  # mail
    r"|(?:/(?:Users|home|root)|[A-Z]:\\Users)[/\\][^\s,;]*",
    re.IGNORECASE,
)


def text_or_none(value: object, longest: int = LONGEST_TEXT) -> str | None:
    """A visible one-line text without UUIDs, addresses and home folders, cut to ``longest``; None
    if nothing is left. Bytes are taken as UTF-8. A character that the protocol refuses is left out,
    and said on stderr."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str):
        return None
    value = re.sub(r"[\0\t-\r]+", " ", value[:10_000])
    if refused := names.unseen(value):
        _say(refused.problem)
    tame = IDENTIFYING.sub(" ", ODD.sub(" ", names.without_unseen(value)))
    return re.sub(r"\s+", " ", tame).strip()[:longest].strip() or None


@cache
def _say(problem: str) -> None:
    write_error(f"a text of this machine {problem}: it is sent without")


def version_or_none(value: object) -> str | None:
    """A version of at most 64 characters, or None."""
    return text_or_none(value, LONGEST_VERSION)


def slug_or_none(value: object) -> str | None:
    """A lower-case name in the wire's form (``hyper-v``), or None."""
    text = text_or_none(value)
    if text is None:
        return None
    return (
        re.sub(r"^[^a-z]+|[^a-z0-9]+$", "", re.sub(r"[^a-z0-9]+", "-", text.lower()))[:64] or None
    )


def whole_or_none(value: object) -> int | None:
    """An integer of at least 1, from an integer or decimal text, else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and re.fullmatch(r"\s*[0-9]{1,16}\s*", value):
        value = int(value)
    return value if isinstance(value, int) and 1 <= value <= LARGEST_INTEGER else None


def first_whole(value: object) -> int | None:
    """The first number of an integer or a text: 10 of ``proc 10:4:6``."""
    if isinstance(value, str):
        match = re.search(r"(?<![0-9])[0-9]{1,16}(?![0-9])", value)
        return whole_or_none(match.group()) if match else None
    return whole_or_none(value)


def positive_or_none(value: object) -> float | None:
    """A finite number above zero, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < LARGEST_INTEGER and math.isfinite(value) else None


def file_text(path: Path | str) -> str:
    try:
        with Path(path).open("rb") as file:
            return file.read(LARGEST_FILE_BYTES).decode("utf-8", errors="replace")
    except (OSError, ValueError):
        return ""


def command_output(*command: str, timeout_seconds: float = 10, any_status: bool = False) -> str:
    """A command's output, or an empty text if it is missing, fails or takes too long.
    ``any_status``: the output counts whatever the exit status is."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=timeout_seconds,
            env={"PATH": COMMANDS, "LC_ALL": "C"},
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    failed = done.returncode != 0 and not any_status
    return "" if failed else done.stdout.decode("utf-8", errors="replace")
