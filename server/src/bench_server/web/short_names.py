"""Shorter names and texts: by whole words, never by letters, so that a model stays a model."""

import re

# Words that a name of hardware can lose, the first first: the vendor, the series, what kind of
# processor it is, and the number of its cores.
LOST = (
    re.compile(r"^(?:NVIDIA|AMD|Intel|Apple) "),
    re.compile(r" \(virtual machine\)| \d+-Core(?= Processor)| Processor$"),
    re.compile(r"^(?:GeForce|Core|Radeon) "),
    re.compile(r" \(\d+-core GPU\)$"),
    re.compile(r"(?<=\()\d+-core (?=CPU\)$)"),
)


def name(hardware: str, most: int = 0) -> str:
    """``RTX 4070 SUPER``, ``M4 Max (CPU)``: of at most ``most`` characters; 0: the shortest."""
    for lost in LOST:
        if len(hardware) <= most:
            return hardware
        hardware = lost.sub("", hardware) or hardware
    return text(hardware, most) if most else hardware


def text(words: str, most: int) -> str:
    """Without its last words; a word that is too long by itself loses letters."""
    if len(words) <= most:
        return words
    kept = words[:most].rpartition(" ")[0].rstrip(" ,;:(") or words[: most - 1]
    return f"{kept}…"
