"""The one place where plain text is written to the terminal; ``output/console.py`` has tables."""

import json
import re
import sys
from functools import partial
from typing import Any

# ESC steers a terminal, and others reorder a line: a server's words are printed too.
CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)


def tame(text: str) -> str:
    """The text with a space in place of what steers a terminal."""
    return CONTROLS.sub(" ", text)


def write(text: str, *, err: bool = False) -> None:
    """Print lines on standard output or standard error."""
    print(tame(text), file=sys.stderr if err else sys.stdout, flush=True)


write_error = partial(write, err=True)


def write_json(document: Any, indent: int | None = 2) -> None:
    """Print JSON in ASCII: it is the same on each terminal, and steers none."""
    print(json.dumps(document, indent=indent), flush=True)
