"""The report as one picture to share: a bar for each framework and device at its fastest."""

import textwrap
from xml.sax.saxutils import escape

from ...base.errors import UsageProblem
from . import tables
from .charts import Bar, places_of
from .figures import MARK_WORDS, Report
from .neighbours import NOBODY, Around, beside

WIDTH = 1200
MARGIN = 60
LABEL_WIDTH, BAR_WIDTH = 330, 590
FONT = "Inter, Roboto, Liberation Sans, DejaVu Sans, Helvetica, Arial, sans-serif"
INK, SOFT = "#16191c", "#565c63"
# Mean width of a letter over its size; DejaVu Sans, the widest of these fonts.
LETTER = 0.6
COLOURS = {"other": "#b9bec4", "cpu": "#6b7684", "cuda": "#2f8f5b", "metal": "#5b62d6"}


def svg(report: Report, around: Around = NOBODY) -> str:
    """A drawing 1200 wide; its height depends on the number of bars.

    Args:
        around: other machines beside this one.
    """
    lead = (
        "Trainmark: samples per second in training, each framework and device in its fastest "
        f"recipe, on {report.data} data, {tables.started(report)[:10]}"
    )
    drawn: list[str] = []
    y = _paragraph(drawn, 65, report.hardware, 34, weight=700)
    y = _paragraph(drawn, y, f"{lead}. {machine_line(report)}", 19, fill=SOFT) + 20
    groups = beside(places_of(report), around.neighbours)
    for group in groups:
        y = _paragraph(drawn, y, group.title, 22, weight=600) - 10
        for bar in group.bars:
            drawn.append(_bar(bar, y))
            y += 38
        y += 45
    if any(bar.in_doubt for group in groups for bar in group.bars):
        y = _paragraph(drawn, y, MARK_WORDS, 18, fill=SOFT)
    if around.words:
        y = _paragraph(drawn, y, around.words, 15, fill=SOFT)
    if around.standing:
        place = f"{around.standing.words}: " if around.standing.words else ""
        y = _paragraph(drawn, y + 10, f"{place}{around.standing.address}", 19, weight=600)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" '
            f'viewBox="0 0 {WIDTH} {y}" font-family="{FONT}">',
            f'<rect width="{WIDTH}" height="{y}" fill="#fcfcfa"/>',
            *drawn,
            "</svg>",
        ]
    )


def _paragraph(
    drawn: list[str], y: int, text: str, size: int, weight: int = 400, fill: str = INK
) -> int:
    """Add the lines of a text from ``y`` on; returns where the next text begins."""
    for line in _lines(text, size, WIDTH - 2 * MARGIN):
        drawn.append(_text(MARGIN, y, line, size, weight, fill))
        y += round(size * 1.5)
    return y


def _lines(text: str, size: int, width: int) -> list[str]:
    return textwrap.wrap(text, int(width / (size * LETTER)), break_on_hyphens=False)


def machine_line(report: Report) -> str:
    """The machine in one line: processor, memory, system, versions of the frameworks."""
    facts = dict(tables.facts_of(report))
    names = {figures.cell.framework for figures in report.cells}
    versions = [f"{name} {facts[name]}" for name in sorted(names) if name in facts]
    shown = [facts["processor"], f"{facts['memory']} memory", facts["system"], *versions]
    return ", ".join(shown)


def png(report: Report, around: Around = NOBODY) -> bytes:
    """The drawing at twice its size.

    Raises:
        UsageProblem: the drawing library is not installed.
    """
    try:
        import resvg_py
    except ImportError as error:
        raise UsageProblem("a PNG needs resvg-py: pip install resvg-py") from error
    return bytes(resvg_py.svg_to_bytes(svg_string=svg(report, around), zoom=2))


def _bar(bar: Bar, y: int) -> str:
    left, width = MARGIN + LABEL_WIDTH, max(3.0, BAR_WIDTH * bar.share)
    drawn = [
        *_label(bar.label, y),
        f'<rect x="{left}" y="{y}" width="{width:.1f}" height="26" rx="4" '
        f'fill="{COLOURS[bar.kind]}"/>',
        _text(left + BAR_WIDTH + 20, y + 20, bar.value, 19, weight=600),
    ]
    if bar.low is not None and bar.high is not None:
        start, end = left + BAR_WIDTH * bar.low, left + BAR_WIDTH * bar.high
        drawn.append(
            f'<line x1="{start:.1f}" x2="{end:.1f}" y1="{y + 13}" y2="{y + 13}" '
            'stroke="#16191c" stroke-width="2"/>'
        )
    return "\n".join(drawn)


def _label(label: str, y: int) -> list[str]:
    """One line of text, or two small ones."""
    if len(_lines(label, 19, LABEL_WIDTH)) == 1:
        return [_text(MARGIN, y + 20, label, 19)]
    lines = _lines(label, 14, LABEL_WIDTH)
    return [_text(MARGIN, y + 10 + 18 * number, line, 14) for number, line in enumerate(lines)]


def _text(x: int, y: int, text: str, size: int, weight: int = 400, fill: str = INK) -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{fill}">'
        f"{escape(text)}</text>"
    )
