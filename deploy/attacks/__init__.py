"""Attacks of ``make audit``, in groups. A new attack is one entry of :data:`GROUPS` or of the table
of its group.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple


class Line(NamedTuple):
    """One attack: what was tried, what came of it, and whether that is as it must be."""

    attack: str
    outcome: str
    found: bool


# Makes its attacks, with files of its own in an empty folder.
Group = Callable[[Path], Iterator[Line]]
