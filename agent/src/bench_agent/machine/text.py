"""Reading small files and commands that may not be there, and taming what they say."""

import re
import subprocess
from pathlib import Path

LONGEST_TEXT = 200


def text_or_none(value: object) -> str | None:
    """A printable one-line text of at most 200 characters, or None if nothing is left."""
    if not isinstance(value, str):
        return None
    tame = re.sub(r"[^\x20-\x7e\u00a0-\u024f]+", " ", value)
    return re.sub(r"\s+", " ", tame).strip()[:LONGEST_TEXT] or None


def whole_or_none(value: object) -> int | None:
    """A count of at least one from an integer or its decimal text, else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and re.fullmatch(r"\s*\d{1,15}\s*", value):
        value = int(value)
    return value if isinstance(value, int) and 1 <= value < 2**53 else None


def file_text(path: Path | str) -> str:
    """Content of a small file, or an empty text."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def command_output(*command: str, timeout_seconds: float = 10) -> str:
    """What a command prints, or an empty text if it is missing, fails or takes too long."""
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=timeout_seconds, check=True, env=_plain_locale()
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", errors="replace")


def _plain_locale() -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C"}
