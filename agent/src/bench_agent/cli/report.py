"""``report``: write the last run as HTML, Markdown, JSON, CSV or PNG."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ..output.report import page, picture, tables
from ..output.report.figures import Report, report_of
from ..remote.outbox import Outbox
from .exits import Exit, stop
from .setup import open_home

FORMATS = ("html", "markdown", "json", "csv", "png")
# Written to a file where none is named; the others are text for the terminal.
FILES = {"html": "trainmark-report.html", "png": "trainmark-report.png"}

Format = Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="File to write, - for standard output. Without it html and png go into this folder.",
    ),
]


def report(
    format: Format = "html",
    output: Output = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Write the last run as one self-contained HTML file, or in another format."""
    chosen = "json" if as_json else format
    if chosen not in FORMATS:
        stop(Exit.WRONG_USAGE, f"unknown format {chosen!r}; choose one of: {', '.join(FORMATS)}")
    entries = Outbox(open_home().outbox).last_run()
    if not entries:
        stop(Exit.WRONG_USAGE, "no run to report: bench-agent run --preset smoke makes one")
    content = _writer(chosen)(report_of([entry.result() for entry in entries]))
    raw = content.encode() if isinstance(content, str) else content
    target = output or (Path(FILES[chosen]) if chosen in FILES else Path("-"))
    if str(target) == "-":
        typer.get_binary_stream("stdout").write(raw)
        return
    try:
        target.write_bytes(raw)
    except OSError as error:
        stop(Exit.WRONG_USAGE, f"cannot write {target}: {error.strerror}; choose with --output")
    typer.echo(f"wrote {target} (results of the last run: {len(entries)})", err=True)


def _writer(name: str) -> Callable[[Report], str | bytes]:
    writers: dict[str, Callable[[Report], str | bytes]] = {
        "html": page.html,
        "markdown": tables.markdown,
        "json": tables.as_json,
        "csv": tables.comma_separated,
        "png": picture.png,
    }
    return writers[name]
