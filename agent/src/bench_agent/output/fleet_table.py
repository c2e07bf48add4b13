"""The table of a fleet: one row for each machine."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from rich.console import Console
from rich.text import Text

from .console import FAILURE, GOOD, WARNING, show_table, table_lines

HEADINGS = ("machine", "hardware", "state", "repeats", "failed", "sent", "note")
RIGHT = ("repeats", "failed", "sent")
STYLES = {"done": GOOD, "failed": FAILURE, "lost": WARNING}


class MachineRow(Protocol):
    """What the table shows of a machine."""

    @property
    def name(self) -> str: ...
    @property
    def hardware(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def planned(self) -> int: ...
    @property
    def finished(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def sent(self) -> int: ...
    @property
    def words(self) -> str: ...


def fleet_lines(machines: Iterable[MachineRow], width: int) -> Text:
    """The table as one text."""
    rows = _rows(machines)
    return Text("\n").join(table_lines(HEADINGS, rows, width, RIGHT)) if rows else Text("no worker")


def show_fleet(console: Console, machines: Iterable[MachineRow]) -> None:
    """Print the table."""
    show_table(console, HEADINGS, _rows(machines), RIGHT)


def _rows(machines: Iterable[MachineRow]) -> list[Sequence[str | Text]]:
    return [
        (
            row.name,
            row.hardware,
            Text(row.state, style=STYLES.get(row.state, "")),
            f"{row.finished} of {row.planned}",
            str(row.failed),
            str(row.sent),
            row.words,
        )
        for row in machines
    ]
