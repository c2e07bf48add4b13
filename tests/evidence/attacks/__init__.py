"""Attacks of ``make audit``, in groups. A new attack is a line of its group; a new group is an
entry of ``GROUPS`` in ``tests/evidence/audit.py``.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple


class Line(NamedTuple):
    """One attack: what was tried, what came of it, and whether that is as it must be.

    ``defended``: False where nothing protects against it, and the server says so.
    """

    attack: str
    outcome: str
    found: bool
    defended: bool = True


# Makes its attacks, with files of its own in an empty folder.
Group = Callable[[Path], Iterator[Line]]
