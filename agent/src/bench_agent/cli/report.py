"""``report``: write the last run as one HTML file, or as JSON."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ..base.errors import HomeProblem, ServerUnreachable
from ..base.home import Home
from ..base.terminal import write
from ..output.console import WARNING, complain
from ..output.report import page
from ..output.report.figures import Report, report_of
from ..output.report.neighbours import Around, around_published, around_ranked
from ..remote.client import ServerRefused
from ..remote.outbox import Entry, Outbox
from ..remote.rank import machine_rank, next_to
from ..run.journal import unfinished
from .exits import Exit, stop
from .options import option
from .setup import open_home, open_reader

HTML_FILE = Path("trainmark-report.html")

ReportServer = Annotated[
    str | None,
    option(
        "--server",
        "URL",
        "Server that ranks this machine: its rank, and bars of the hardware ranked above and "
        "below it. Without one, a published figure beside each workload that has one.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help=f"File to write; - is standard output. Default: {HTML_FILE} in this folder, and "
        "standard output for JSON.",
    ),
]


def report(
    output: Output = None,
    server: ReportServer = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write the figures as JSON.")] = False,
) -> None:
    """Write the last run as one self-contained HTML file, or as JSON."""
    home = open_home()
    entries = Outbox(home.outbox).last_run()
    if not entries:
        stop(Exit.WRONG_USAGE, "no run to report: bench-agent run --preset smoke makes one")
    made = _incomplete(report_of([entry.result() for entry in entries]), home)
    text = page.as_json(made) if as_json else page.html(made, _around(made, entries, server))
    target = output or (Path("-") if as_json else HTML_FILE)
    if str(target) == "-":
        typer.get_binary_stream("stdout").write(text.encode())
        return
    try:
        target.write_bytes(text.encode())
    except OSError as error:
        stop(Exit.WRONG_USAGE, f"cannot write {target}: {error.strerror}; choose with --output")
    write(f"wrote {target} (results of the last run: {len(entries)})", err=True)


def _incomplete(made: Report, home: Home) -> Report:
    """The report, with how much of the run is there if it did not end."""
    try:
        journal = unfinished(home)
    except HomeProblem as problem:
        complain(str(problem), WARNING)
        journal = None
    if journal is None or journal.run_id != made.run_id:
        return made
    done = f"{len(made.results)} of {len(journal.plan())} measurements"
    words = f"This run is not complete: it has {done}. To continue it: bench-agent run --resume"
    complain(words, WARNING)
    return replace(made, incomplete=words)


def _around(made: Report, entries: Sequence[Entry], server: str | None) -> Around:
    """The machines ranked next to this one if a server ranks it, else published figures."""
    sent = [str(entry.answer["id"]) for entry in entries if entry.answer and "id" in entry.answer]
    alone = around_published(made)
    if not server:
        return alone
    if not sent:
        complain(
            "no result of this run is on a server, so none is ranked; fix: "
            f"bench-agent submit --server {server}",
            WARNING,
        )
        return alone
    client, place = open_reader(server, open_home()), None
    try:
        workloads = dict.fromkeys(figures.cell.workload for figures in made.cells)
        place = machine_rank(client, sent[-1], workloads)
        if place and (rows := next_to(client, place.machine_id, workloads)):
            return around_ranked(rows, place)
        missing = "other hardware next to this machine's" if place else "result of this run"
        why = f"{server} ranks no {missing}"
    except (ServerUnreachable, ServerRefused) as error:
        why = str(error)
    finally:
        client.close()
    shown = "has published figures" if alone.neighbours else "shows this run alone"
    complain(f"{why}: the report {shown} instead", WARNING)
    return replace(alone, rank=place)
