"""The report as one picture to share: a bar for each framework and device at its fastest."""

from xml.sax.saxutils import escape

from ...base.errors import UsageProblem
from . import tables
from .charts import Bar, places_of
from .figures import MARK_WORDS, Report

WIDTH = 1200
MARGIN = 60
LABEL_WIDTH, BAR_WIDTH = 330, 590
FONT = "Inter, Roboto, Liberation Sans, DejaVu Sans, Helvetica, Arial, sans-serif"
COLOURS = {"cpu": "#6b7684", "cuda": "#2f8f5b", "metal": "#5b62d6"}


def svg(report: Report) -> str:
    """A drawing 1200 wide; its height depends on the number of bars."""
    y, drawn, groups = 150, [], places_of(report)
    for group in groups:
        drawn.append(_text(MARGIN, y, group.title, 22, weight=600))
        y += 20
        for bar in group.bars:
            drawn.append(_bar(bar, y))
            y += 38
        y += 45
    if any(bar.in_doubt for group in groups for bar in group.bars):
        drawn.append(_text(MARGIN, y, MARK_WORDS, 19, fill="#565c63"))
        y += 40
    lead = (
        "samples per second in training, each framework and device in its fastest recipe, "
        f"on {report.data} data, {tables.started(report)[:10]}"
    )
    height = y + 10
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" font-family="{FONT}">',
            f'<rect width="{WIDTH}" height="{height}" fill="#fcfcfa"/>',
            _text(MARGIN, 65, report.hardware, 34, weight=700),
            _text(MARGIN, 100, f"Trainmark: {lead}", 19, fill="#565c63"),
            *drawn,
            "</svg>",
        ]
    )


def png(report: Report) -> bytes:
    """The drawing at twice its size.

    Raises:
        UsageProblem: the drawing library is not installed.
    """
    try:
        import resvg_py
    except ImportError as error:
        raise UsageProblem("a PNG needs resvg-py: pip install resvg-py") from error
    return bytes(resvg_py.svg_to_bytes(svg_string=svg(report), zoom=2))


def _bar(bar: Bar, y: int) -> str:
    left, width = MARGIN + LABEL_WIDTH, max(3.0, BAR_WIDTH * bar.share)
    drawn = [
        _text(MARGIN, y + 20, bar.label, 19),
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


def _text(x: int, y: int, text: str, size: int, weight: int = 400, fill: str = "#16191c") -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{fill}">'
        f"{escape(text)}</text>"
    )
