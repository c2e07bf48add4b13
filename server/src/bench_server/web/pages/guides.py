"""Guide pages: methodology, verdicts, trust, documents, submit, log, dumps."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from markupsafe import Markup
from sqlmodel import Session

from bench_protocol.trust import shows, trust_levels
from bench_protocol.trust.shows import Row
from bench_protocol.trust.trust_levels import TrustLevel

from ...answers import log_entries, query_names
from ...answers.types.trust import CosignedCheckpoint, LogAnswer, LogRecord
from ...errors import NotFound
from ...export import daily
from ...log.server_keys import Authority
from ...settings import Settings
from .. import documents
from ..documents import Section
from .common import Page

ENTRIES = 25
NEWEST_DAYS = 3


@dataclass(frozen=True)
class TrustPage(Page):
    """``/trust``: what does each trust level need, and what could a cheater still do?"""

    levels: tuple[TrustLevel, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class DocumentPage(Page):
    """``/documents/NAME``: a document of ``docs``. ``sections``: none where its text lists them."""

    text: Markup
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class SubmitPage(Page):
    """``/submit``: how do I submit results? ``enrollment``: who may enroll a key."""

    server: str
    enrollment: str
    license: str


@dataclass(frozen=True)
class LogPage(Page):
    """``/log``: how large is the log, who signed it, and how is it verified? ``records``: a page of
    entries, newest first; ``cosigned``: what witnesses signed in the last days."""

    heading: str
    answer: LogAnswer
    records: tuple[LogRecord, ...]
    older_href: str | None
    newer_href: str | None
    cosigned: tuple[CosignedCheckpoint, ...]


@dataclass(frozen=True)
class DumpsPage(Page):
    """``/dumps/``: where can I download all results? ``days``: newest first, with their files."""

    days: tuple[tuple[str, tuple[daily.Dump, ...]], ...]


def trust_page() -> TrustPage:
    return TrustPage(
        "How far a result can be trusted", "/openapi.json", trust_levels.LEVELS, shows.ROWS
    )


def document_page(name: str) -> DocumentPage:
    """Raises NotFound if there is no document of this name."""
    file = f"{name}.md"
    if file not in documents.files():
        names = [path.removesuffix(".md") for path in documents.files()]
        near = query_names.nearest(name[:100], names)
        raise NotFound(f"no document {name[:100]!r}", field="name", near=near)
    title, text, sections = documents.rendered(file)
    listed = sections and f'href="#{sections[0].anchor}"' in text
    return DocumentPage(title, "/api/v1/workloads", text, () if listed else sections)


def submit_page(server: str, settings: Settings) -> SubmitPage:
    return SubmitPage("Submit", "/openapi.json", server, settings.enrollment, settings.license)


def log_page(
    session: Session, authority: Authority, license: str, before: int | None = None
) -> LogPage:
    """``before``: show the entries before this index; None: the newest."""
    answer = log_entries.state(session, authority, license)
    end = min(before or answer.size, answer.size)
    start = max(end - ENTRIES, 0)
    newer = end + ENTRIES
    cosigned = log_entries.cosigned(session, NEWEST_DAYS).checkpoints
    return LogPage(
        title="The log",
        heading=log_finding(answer.size, cosigned),
        json_href="/api/v1/log",
        answer=answer,
        records=log_entries.page(session, authority, start, end - start).records[::-1],
        older_href=f"/log?before={start}#entries" if start else None,
        newer_href=None
        if end == answer.size
        else "/log#entries"
        if newer >= answer.size
        else f"/log?before={newer}#entries",
        cosigned=cosigned,
    )


def log_finding(size: int, cosigned: Sequence[CosignedCheckpoint]) -> str:
    """``The log has 4,510 entries; 2 witnesses have signed the first 4,400``."""
    entries = f"The log has {size:,} {'entry' if size == 1 else 'entries'}"
    if not cosigned:
        return f"{entries}, signed by this server alone"
    newest = cosigned[0]
    signers = len(newest.witnesses)
    others = "1 witness has" if signers == 1 else f"{signers} witnesses have"
    part = "all of them" if newest.size == size else f"the first {newest.size:,}"
    return f"{entries}; {others} signed {part}"


def dumps_page(folder: Path | None) -> DumpsPage:
    by_day = groupby(daily.listed(folder).dumps, key=lambda dump: dump.day)
    days = tuple((day, tuple(files)) for day, files in by_day)
    return DumpsPage("Daily dumps", "/api/v1/dumps", days)
