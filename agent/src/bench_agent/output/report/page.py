"""The report as one HTML file with styles and drawings, without scripts or external files."""

from dataclasses import replace
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from . import tables
from .charts import charts_of
from .figures import MARK_WORDS, MEDIAN_WORDS, Report
from .headline import headline
from .neighbours import NOBODY, Around, beside
from .remarks import accuracy_lines, published_lines

FOLDER = Path(__file__).parent
DEVICES = {"cpu": "CPU", "cuda": "CUDA", "metal": "Metal"}
MOST_TRACES = 12


def html(report: Report, around: Around = NOBODY) -> str:
    """The page; everything from the results is escaped.

    Args:
        around: other machines beside this one.
    """
    charts = charts_of(report)
    templates = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("report.html.j2").render(
        css=(FOLDER / "report.css").read_text(),
        report=report,
        charts=replace(charts, fastest=beside(charts.fastest, around.neighbours)),
        headline=headline(report, rates=False),
        around=around,
        table=tables.table_of(report),
        settings=tables.settings_of(report),
        facts=tables.facts_of(report),
        started=tables.started(report),
        kinds=[kind for kind in DEVICES if kind in {c.cell.device.kind for c in report.cells}],
        names=DEVICES,
        corrections=published_lines(report.preset),
        accuracies=accuracy_lines(report.results),
        most_traces=MOST_TRACES,
        whiskers=any(figures.low for figures in report.cells),
        median_words=MEDIAN_WORDS,
        mark=MARK_WORDS if any(figures.in_doubt for figures in report.cells) else None,
    )
