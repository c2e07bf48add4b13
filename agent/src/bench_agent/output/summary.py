"""The end of a run for its user: summary table, remarks, next steps."""

from rich import box
from rich.console import Console
from rich.table import Table

from bench_protocol import format as people

from ..base.home import Home
from ..remote.standing import Standing
from ..run.run import RunSummary
from .report.charts import charts_of, unusual_precision
from .report.figures import MARK_WORDS, MEDIAN_WORDS, Report, marked, report_of, speed_up
from .report.remarks import accuracy_lines, published_lines

WIDE_ENOUGH = 100


def show_end(console: Console, summary: RunSummary, home: Home, server: str | None = None) -> None:
    """Print the summary and the next steps; ``server``: where the results should go."""
    lines = what_next(summary, home, server)
    if summary.results:
        report = report_of(summary.results)
        # In a file the table keeps its full width.
        width = None if console.is_terminal else WIDE_ENOUGH
        console.print(summary_table(report), width=width)
        advice = disturbed_line(report)
        lines = [*remarks(report), *lines, *([advice] if advice else [])]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def summary_table(report: Report) -> Table:
    """One row per cell, medians over its repeats: rate, epoch, spread, speed-up over naive. A
    question mark follows figures in doubt."""
    table = Table(
        title="Training speed of this machine",
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    # On a narrow terminal, names wrap to a second line.
    for heading in ("workload", "on"):
        table.add_column(heading, overflow="fold")
    table.add_column("recipe", no_wrap=True)
    for heading in ("samples/s", "epoch", "spread", "vs naive"):
        table.add_column(heading, justify="right", no_wrap=True)
    naives = {figures.cell: figures for figures in report.cells if figures.cell.recipe == "naive"}
    for figures in report.cells:
        naive = naives.get(figures.cell.model_copy(update={"recipe": "naive"}))
        over = ""
        if naive and figures is not naive:
            over = marked(people.ratio(speed_up(figures, naive).speed_up), figures, naive)
        if figures.in_doubt:
            table.caption = MARK_WORDS
        table.add_row(
            f"{figures.cell.workload}, {figures.cell.batch_size}{unusual_precision(figures.cell)}",
            figures.place,
            figures.cell.recipe,
            marked(people.rate(figures.samples_per_second), figures),
            people.seconds(figures.epoch_seconds),
            people.percent(figures.within_run_spread),
            over,
        )
    return table


def remarks(report: Report) -> list[str]:
    """Remarks on the figures, and the cells without one."""
    failed = [f"failed: {cell}: {why}" for cell, why in report.failed]
    several = any(len(figures.rates) > 1 for figures in report.cells)
    return [
        *([MEDIAN_WORDS] if several else []),
        *failed,
        *device_lines(report),
        *accuracy_lines(report.results),
        *published_lines(report.preset),
        *report.doubts,
    ]


def what_next(summary: RunSummary, home: Home, server: str | None = None) -> list[str]:
    """Where the results are, and the next commands."""
    stored = len(summary.results)
    lines = [
        f"{stored} result{'s' * (stored != 1)} kept in {home.outbox}, {summary.sent} sent now."
    ]
    if summary.standing:
        lines += standing_lines(summary.standing)
    else:
        lines += [f"  {address} (not on its board)" for address in summary.addresses[-1:]]
    if summary.results:
        lines.append(f"{home.command('report')} writes them as a page with charts.")
    if summary.waiting:
        submit = home.command(f"submit --server {server or 'URL'}")
        lines.append(f"{summary.waiting} wait: {submit} sends them.")
    if summary.interrupted:
        resume = home.command("run --resume")
        lines.append(f"Interrupted: {resume} continues it.")
    return lines


def standing_lines(standing: Standing) -> list[str]:
    """Where this machine stands, and its page."""
    words = f"is {standing.words}" if standing.words else "has no rank yet"
    return [f"This machine {words}.", f"  {standing.address}"]


def disturbed_line(report: Report) -> str | None:
    """What to do about figures that something else slowed down; None without any."""
    disturbed = [figures for figures in report.cells if figures.slowed]
    if not disturbed:
        return None
    return (
        f"Not worth sharing: {len(disturbed)} of {len(report.cells)} figures, because something "
        "else slowed this machine down. Close other programs, let it cool, and run again."
    )


def device_lines(report: Report) -> list[str]:
    """Speed of a GPU divided by the CPU's, each in its fastest set-up, if both were measured."""
    return [
        f"{group.title}: {bar.label} is {bar.note}"
        for group in charts_of(report).devices
        for bar in group.bars[1:]
    ]
