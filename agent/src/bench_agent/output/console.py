"""Output on a terminal: colours, line breaks, and the style of tables.

Yellow is a warning, red a failure, green a good verdict; numbers and paths have no colour.
``NO_COLOR`` (no-color.org) turns colours off; ``FORCE_COLOR`` (force-color.org) turns them on
where the output is not a terminal. A line breaks between words, and only at a terminal. An
indented line is a command, an address or a path to copy: it never breaks.
"""

import os
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ..base.terminal import tame

GOOD, WARNING, FAILURE, SOFT = "green", "yellow", "red", "dim"
# Lines of a file, and of a program that reads them, are never broken.
UNBROKEN = 10_000
GAP = 2


def console(
    stream: TextIO | None = None,
    *,
    stderr: bool = False,
    environ: Mapping[str, str] = os.environ,
    width: int | None = None,
) -> Console:
    """A console on standard output, standard error or another stream. ``width``: None asks the
    terminal. An empty ``NO_COLOR`` or ``FORCE_COLOR`` counts as not set."""
    stream = stream or (sys.stderr if stderr else sys.stdout)
    return Console(
        file=stream,
        width=width,
        highlight=False,  # Rich's own colours have no meaning
        # Without this, FORCE_COLOR would also start live displays in files.
        force_terminal=stream.isatty(),
        color_system="standard" if environ.get("FORCE_COLOR") else "auto",
        no_color=bool(environ.get("NO_COLOR")),
    )


def say(console: Console, text: str, style: str = "") -> None:
    for line in tame(text).splitlines() or [""]:
        kept = line.startswith(" ") or not console.is_terminal
        for part in [line] if kept else _broken(line, console.width):
            console.print(Text(part, style=style), soft_wrap=True)


def complain(text: str, style: str = FAILURE) -> None:
    """Print lines on standard error: a failure, or a warning."""
    say(console(stderr=True), text, style)


def show_table(
    console: Console,
    headings: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    right: Collection[str] = (),
) -> None:
    """Print a table. A row of one cell is the title of the rows below it. ``right``: headings of
    the columns that are aligned to the right."""
    width = console.width if console.is_terminal else UNBROKEN
    for line in table_lines(headings, rows, width, right):
        console.print(line, soft_wrap=True)


def table_lines(
    headings: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    width: int,
    right: Collection[str] = (),
) -> Iterator[Text]:
    """The lines of a table. Its last column breaks between words. If the others leave too little
    for it, each row becomes a paragraph instead. ``width``: most columns of a line; only a single
    longer word exceeds it."""
    cells = [[_text(cell) for cell in row] for row in rows]
    full = [row for row in cells if len(row) > 1]
    columns = list(zip([Text(heading) for heading in headings], *full, strict=True))
    widths = [max(cell.cell_len for cell in column) for column in columns]
    before = sum(widths[:-1]) + GAP * (len(widths) - 1)
    longest = max(cell_len(word) for cell in columns[-1] for word in cell.plain.split(" "))
    if before + min(longest, widths[-1]) > width:
        yield from _paragraphs(cells, width)
        return
    widths[-1] = min(widths[-1], width - before)
    titles = [row[0].cell_len for row in cells if len(row) == 1]
    aligned = [heading in right for heading in headings]
    yield from _row([Text(heading) for heading in headings], widths, aligned)
    yield Text("─" * min(max(before + widths[-1], *titles, 0), width), style=SOFT)
    for row in cells:
        if len(row) == 1:
            yield from (Text(part, row[0].style) for part in _broken(row[0].plain, width))
        else:
            yield from _row(row, widths, aligned)


def _row(row: Sequence[Text], widths: Sequence[int], aligned: Sequence[bool]) -> Iterator[Text]:
    last = _broken(row[-1].plain, widths[-1])
    for number, part in enumerate(last):
        first = [*row[:-1]] if not number else [Text()] * (len(row) - 1)
        line = Text()
        for cell, width, to_right in zip(
            [*first, Text(part, row[-1].style)], widths, aligned, strict=True
        ):
            fill = Text(" " * (width - cell.cell_len))
            line.append_text(fill + cell if to_right else cell + fill)
            line.append(" " * GAP)
        line.rstrip()
        yield line


def _paragraphs(cells: Sequence[Sequence[Text]], width: int) -> Iterator[Text]:
    for row in cells:
        text = ", ".join(cell.plain.strip() for cell in row if cell.plain.strip())
        style = next((cell.style for cell in row if cell.style), "")
        for part in _broken(text, width, "" if len(row) == 1 else "  "):
            yield Text(part, style)


def _broken(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of whole words; a longer word has a line of its own."""
    leading = " " * (len(text) - len(text.lstrip()))
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent if not leading else "",
        subsequent_indent=f"{indent}{leading}",
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]


def _text(cell: str | Text) -> Text:
    text = cell if isinstance(cell, Text) else Text(cell)
    return Text(tame(text.plain), text.style)
