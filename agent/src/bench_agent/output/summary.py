"""The end of a run: its worth, the finding, the table of figures, remarks, next steps."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from bench_protocol.base import format as people
from bench_protocol.catalogue import speeds
from bench_protocol.payload import doubt_text

from ..base.home import Home
from ..remote.rank import MachineRank
from ..run.summary import RunSummary
from .console import FAILURE, GOOD, WARNING, say, show_table
from .documents import short_name, unusual
from .report.charts import charts_of
from .report.figures import (
    MARK_WORDS,
    MEDIAN_WORDS,
    CellFigures,
    Report,
    grouped,
    marked,
    report_of,
    speed_up,
)
from .report.remarks import (
    FIXES,
    accuracy_lines,
    doubts_of,
    headline,
    naive_of,
    published_lines,
    slowed_by,
    tuned_words,
)

Row = Sequence[str | Text]
HEADINGS = ("workload and set-up", "samples/s", "epoch", "spread", "vs naive")


def show_end(
    console: Console,
    summary: RunSummary,
    home: Home,
    server: str | None = None,
    verbose: bool = False,
) -> None:
    """Print whether the figures are worth sharing and what was found, then the figures, remarks and
    the next steps; ``verbose``: every kind of warning, not one for each cause."""
    report = report_of(summary.results) if summary.results else None
    disturbed = report is not None and slowed_by(report) is not None
    if report:
        style = GOOD if report.cells and not disturbed else WARNING
        say(console, worth_line(report, sent=summary.sent > 0), style)
        say(console, f"{headline(report)}.")
        show_figures(console, report)
        show_remarks(console, report, verbose)
    where = what_is_where(summary, home, server, advise=not disturbed)
    say(console, "\n".join(where))
    if report:
        say(console, f"A page with charts and every warning:\n  {home.command('report')}")
    if summary.rank:
        say(console, "\n".join(rank_lines(summary.rank)))


def worth_line(report: Report, sent: bool) -> str:
    """Whether the figures are worth sharing, why not, and what to do. ``sent``: a server has them
    already."""
    figures = people.plural(len(report.cells), "figure")
    if not report.cells:
        return "Nothing to share."
    if not (why := slowed_by(report)):
        return f"Worth sharing: no other work or heat slowed {figures}."
    disturbed = sum(one.slowed for one in report.cells)
    there = " The server has them, marked as disturbed, and uses undisturbed ones where it has any."
    return (
        f"Not worth sharing: {disturbed} of {figures}, because {doubt_text.words(why)}. "
        f"To fix it, {FIXES[why.code]}.{there if sent else ''}"
    )


def show_figures(console: Console, report: Report) -> None:
    """One row per cell below its workload, medians over its repeats: rate, epoch, spread, speed-up
    over naive. A question mark follows figures in doubt."""
    rows: list[Row] = []
    for group in grouped(report.cells, lambda c: (c.cell.workload, c.cell.batch_size)):
        rows.append([f"{group[0].cell.workload}, batch {group[0].cell.batch_size:,}"])
        rows += [_row(report, figures) for figures in group]
    if rows:
        show_table(console, HEADINGS, rows, right=HEADINGS[1:])
    if any(figures.in_doubt for figures in report.cells):
        say(console, MARK_WORDS)


def _row(report: Report, figures: CellFigures) -> Row:
    naive, style = naive_of(report, figures), WARNING if figures.in_doubt else ""
    rate = speeds.among_samples(figures.samples_per_second, figures.cell.workload)
    over = marked(people.ratio(speed_up(figures, naive).speed_up), figures, naive) if naive else ""
    return [
        f"  {figures.place} {figures.cell.recipe}{unusual(figures.cell)}",
        Text(marked(rate, figures), style),
        people.seconds(figures.epoch_seconds),
        people.percent(figures.within_run_spread),
        Text(over, WARNING if over.endswith("?") else ""),
    ]


def show_remarks(console: Console, report: Report, verbose: bool) -> None:
    """The cells without a figure, remarks on the figures, and one warning for each cause; with
    ``verbose`` each kind of warning, and the meaning of a figure."""
    for cell, why in report.failed:
        say(console, f"Failed: {short_name(cell)}: {why}", FAILURE)
    several = any(len(figures.rates) > 1 for figures in report.cells)
    for line in (
        *([MEDIAN_WORDS] if several and verbose else []),
        *filter(None, [tuned_words(report)]),
        *device_lines(report),
        *accuracy_lines(report.results),
        *published_lines(report.preset),
    ):
        say(console, line)
    for doubt in doubts_of(report, verbose):
        say(console, f"Warning: {doubt}", WARNING)


def what_is_where(
    summary: RunSummary, home: Home, server: str | None = None, advise: bool = True
) -> list[str]:
    """Where the results are. A command is on a line of its own, to copy; with ``advise`` the one
    that sends them, for figures that are worth sharing."""
    stored = len(summary.results)
    results = people.plural(stored, "result")
    earlier = f", {summary.sent_earlier} of them from earlier runs" if summary.sent_earlier else ""
    lines = [f"{results} stored in {home.outbox}, {summary.sent} sent{earlier}."]
    if not summary.rank and summary.addresses:
        lines += ["The last result, not on a leaderboard yet:", f"  {summary.addresses[-1]}"]
    pending = people.plural(summary.waiting, "pending result")
    if summary.waiting and advise:
        submit = home.command(f"submit --server {server or 'URL'}")
        unranked = "" if server else "; what was measured without --server is never ranked"
        lines += [f"To send the {pending}{unranked}:", f"  {submit}"]
    elif summary.waiting:
        lines += [f"The outbox has {pending}."]
    if summary.interrupted:
        to = f" --server {server}" if server else ""
        lines += ["Interrupted. To continue:", f"  {home.command(f'run --resume{to}')}"]
    return lines


def rank_lines(rank: MachineRank) -> list[str]:
    words = f"is {rank.words}" if rank.words else "has no rank yet"
    return [f"This hardware {words}.", f"  {rank.address}"]


def device_lines(report: Report) -> list[str]:
    """Speed of a GPU divided by the CPU's, each in its fastest set-up, if both were measured and
    neither was disturbed."""
    return [
        f"{group.title}: {bar.label} is {bar.note}"
        for group in charts_of(report).devices
        for bar in group.bars[1:]
        if bar.note
    ]
