"""Guide pages: ``/methodology``, ``/trust``, ``/documents/NAME``, ``/submit``, ``/log``,
``/dumps/``.
"""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from sqlmodel import Session

from bench_protocol import shows, trust_levels
from bench_protocol.hardware import slug
from bench_protocol.shows import Row
from bench_protocol.trust_levels import TrustLevel

from ...answers import log_entries, query_names
from ...answers.types import CountersignedCheckpoint, LogAnswer, LogRecord
from ...errors import NotFound
from ...export import daily
from ...log.server_keys import Authority
from ...settings import Settings

SLASH = re.compile(r"(?<=\w)/(?=\w)(?![^<>]*>)")
ENTRIES = 25
NEWEST_DAYS = 3
# What a document answers, by its name or its folder.
QUESTIONS = {
    "adding": "How is a workload, a framework or a check added?",
    "adr": "What was decided, and why?",
    "architecture": "What are the parts, and what does each do?",
    "faults": "Which check detects which planted fault?",
    "glossary": "What does each word mean?",
    "methodology": "What does a figure of Trainmark mean, and what does it not mean?",
    "notebook": "What was tried, and what came of it?",
    "operating": "How is a server run?",
    "protocol": "What do agent and server send each other?",
    "results": "What has the project measured of itself?",
    "threat-model": "What is protected from whom, and what is not prevented?",
    "watching": "How is a machine measured again when it changes?",
}
# Of a document's table that a phone has as a table.
MOST_COLUMNS = 5


@dataclass(frozen=True)
class Section:
    """A section of a document: its anchor and heading."""

    anchor: str
    heading: str


@dataclass(frozen=True)
class MethodologyPage:
    """``/methodology``: how are figures measured, and what do they not prove? ``text`` is
    ``docs/methodology.md`` as HTML."""

    title: str
    json_href: str
    text: Markup
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class TrustPage:
    """``/trust``: what does each trust level need, and what could a cheater still do?

    ``rows``: what the statements about a result mean; ``unmeasured``: devices without a measured
    tolerance.
    """

    title: str
    json_href: str
    levels: tuple[TrustLevel, ...]
    rows: tuple[Row, ...]
    unmeasured: tuple[str, ...]


@dataclass(frozen=True)
class DocumentPage:
    """``/documents/NAME``: one document of ``docs`` as HTML. ``sections``: none where the text
    itself lists them."""

    title: str
    question: str
    json_href: str
    text: Markup
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class SubmitPage:
    """``/submit``: how do I submit results of my machine? ``server``: this server's address in the
    browser; ``enrollment``: who may enroll a key (see the settings)."""

    title: str
    json_href: str
    server: str
    enrollment: str
    license: str


@dataclass(frozen=True)
class LogPage:
    """``/log``: how large is the log, who signed it, and how is it verified? ``heading`` states the
    finding. ``records``: a page of entries, newest first, with the addresses of the pages beside
    it; ``countersigned``: what others signed in the last days."""

    title: str
    heading: str
    json_href: str
    answer: LogAnswer
    records: tuple[LogRecord, ...]
    older_href: str | None
    newer_href: str | None
    countersigned: tuple[CountersignedCheckpoint, ...]


@dataclass(frozen=True)
class DumpsPage:
    """``/dumps/``: where can I download all results? ``days``: newest first, with their files."""

    title: str
    json_href: str
    days: tuple[tuple[str, tuple[daily.Dump, ...]], ...]


def methodology_page() -> MethodologyPage:
    title, text, sections = _document("methodology.md")
    return MethodologyPage(title, "/api/v1/workloads", text, sections)


def trust_page() -> TrustPage:
    unmeasured = tuple(
        words
        for device, words in trust_levels.DEVICES.items()
        if trust_levels.not_checkable(device, "float32")
    )
    levels = trust_levels.LEVELS
    return TrustPage("Trust levels", "/openapi.json", levels, shows.ROWS, unmeasured)


def document_page(name: str) -> DocumentPage:
    """Raises:
    NotFound: there is no document of this name.
    """
    file = f"{name}.md"
    if file not in _files():
        names = [path.removesuffix(".md") for path in _files()]
        near = query_names.nearest(name[:100], names)
        raise NotFound(f"no document {name[:100]!r}", field="name", near=near)
    title, text, sections = _document(file)
    question = QUESTIONS[name if name in QUESTIONS else name.partition("/")[0]]
    listed = sections and f'href="#{sections[0].anchor}"' in text
    return DocumentPage(title, question, "/api/v1/workloads", text, () if listed else sections)


def submit_page(server: str, settings: Settings) -> SubmitPage:
    return SubmitPage("Submit", "/openapi.json", server, settings.enrollment, settings.license)


def log_page(
    session: Session, authority: Authority, license: str, before: int | None = None
) -> LogPage:
    """Fill the context.

    Args:
        before: show the entries before this index; the newest ones without it.
    """
    answer = log_entries.state(session, authority, license)
    end = min(before or answer.size, answer.size)
    start = max(end - ENTRIES, 0)
    newer = end + ENTRIES
    countersigned = log_entries.countersigned(session, NEWEST_DAYS).checkpoints
    return LogPage(
        title="The log",
        heading=log_finding(answer.size, countersigned),
        json_href="/api/v1/log",
        answer=answer,
        records=log_entries.page(session, authority, start, end - start).records[::-1],
        older_href=f"/log?before={start}#entries" if start else None,
        newer_href=None
        if end == answer.size
        else "/log#entries"
        if newer >= answer.size
        else f"/log?before={newer}#entries",
        countersigned=countersigned,
    )


def log_finding(size: int, countersigned: Sequence[CountersignedCheckpoint]) -> str:
    """``The log has 4,510 entries; 2 others have signed the first 4,400``: the signers of the
    newest checkpoint that anybody countersigned."""
    entries = f"The log has {size:,} {'entry' if size == 1 else 'entries'}"
    if not countersigned:
        return f"{entries}, signed by this server alone"
    newest = countersigned[0]
    signers = len(newest.witnesses) + len(newest.stamps)
    others = "1 other has" if signers == 1 else f"{signers} others have"
    part = "all of them" if newest.size == size else f"the first {newest.size:,}"
    return f"{entries}; {others} signed {part}"


def dumps_page(folder: Path | None) -> DumpsPage:
    by_day = groupby(daily.listed(folder).dumps, key=lambda dump: dump.day)
    days = tuple((day, tuple(files)) for day, files in by_day)
    return DumpsPage("Daily dumps", "/api/v1/dumps", days)


@cache
def _document(name: str) -> tuple[str, Markup, tuple[Section, ...]]:
    """Render a Markdown document: title, body as HTML, sections. Raw HTML in it is escaped."""
    text = _docs().joinpath(name).read_text("utf-8")
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    for inline in tokens:
        for child in inline.children or ():
            if child.type == "link_open":
                child.attrSet("href", _address(str(child.attrGet("href")), name))
    sections = []
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            opening.attrSet("id", slug(inline.content))
            if opening.tag == "h2":
                sections.append(Section(slug(inline.content), inline.content))
        if opening.type == "table_open":
            opening.attrSet("tabindex", "0")
    _label_wide_tables(tokens)
    title = tokens[1].content
    body = markdown.renderer.render(tokens[3:], markdown.options, {})
    # Cards of a phone are narrow: a path breaks at a slash before it breaks elsewhere.
    body = re.sub(r"<td data-label=.*?</td>", lambda cell: SLASH.sub("/<wbr>", cell[0]), body)
    return title, Markup(body), tuple(sections)  # noqa: S704 - our own text, HTML in it is escaped


def _label_wide_tables(tokens: Sequence[Token]) -> None:
    """Give each cell of a table with many columns the name of its column: a phone has its rows as
    cards (``wide`` in site.css)."""
    table, names, column = None, list[str](), 0
    for opening, inline in pairwise(tokens):
        if opening.type == "table_open":
            table, names = opening, []
        elif opening.type == "tr_open":
            column = 0
        elif opening.type == "th_open":
            names.append(inline.content)
        elif opening.type == "td_open" and len(names) > MOST_COLUMNS and table:
            table.attrSet("class", "wide")
            opening.attrSet("data-label", names[column])
            column += 1


def _address(href: str, name: str) -> str:
    """The address of a link in a document: other documents are pages here."""
    target, hash, anchor = href.partition("#")
    file = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    if not target or file not in _files():
        return href
    page = "/methodology" if file == "methodology.md" else f"/documents/{file.removesuffix('.md')}"
    return f"{page}{hash}{anchor}"


@cache
def _files() -> frozenset[str]:
    """The documents, as paths below ``docs``."""
    return frozenset(path.relative_to(_docs()).as_posix() for path in _docs().rglob("*.md"))


def _docs() -> Path:
    """``docs`` is at the root of the repository; a wheel contains it beside this package."""
    package = Path(__file__).resolve().parents[2]
    inside = package / "docs"
    return inside if inside.is_dir() else package.parents[2] / "docs"
