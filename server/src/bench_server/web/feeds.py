"""Atom feeds (RFC 4287): new results, and changes in the histories of machines."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from sqlalchemy import ColumnElement, select
from sqlmodel import Session

from bench_protocol.catalogue import speeds
from bench_protocol.statistics.change_points import LEAST_RUNS

from ..answers import machines, query_names, stored_figures, stored_results
from ..answers.filters import ResultPageFilters
from ..answers.history import changes
from ..db.tables import EnvironmentRow, Measurement
from ..ranking.medians import names_machine
from ..ranking.rows import TABLE
from .changes import in_words
from .render import xml_templates

MOST_ENTRIES = 50
# A history is searched for changes when a feed is read, a few hundredths of a second each.
MOST_HISTORIES = 12


@dataclass(frozen=True)
class Entry:
    """A ranked result, or a change that begins with one. ``id``: unlike that of any other entry."""

    id: str
    path: str
    title: str
    summary: str
    at: datetime


@dataclass(frozen=True)
class Feed:
    """A feed; ``path``: of the page that it is of. The newest entry is the first."""

    title: str
    path: str
    entries: tuple[Entry, ...]


def new_results(session: Session) -> Feed:
    return Feed("new results", "/", _results(session, {}))


def of_machine(session: Session, machine_id: str) -> Feed:
    """Results and changes of one machine. Raises NotFound if it has no figures."""
    name = names_machine(machines.machine_figures(session, machine_id)).hardware
    title = f"{name}, machine {machine_id[:8]}"
    return _of(session, title, f"/machines/{machine_id}", "machine_id", machine_id)


def of_hardware(session: Session, slug: str) -> Feed:
    """Results of one hardware, changes of its machines. Raises NotFound if it has no figures."""
    figures = stored_figures.hardware_figures(session, slug)
    if not figures:
        raise query_names.no_hardware(session, slug)
    return _of(session, figures[0].hardware, f"/hardware/{slug}", "hardware_slug", slug)


def of_owner(session: Session, label: str) -> Feed:
    """Results and changes of an owner's machines. Raises NotFound if there is no such owner."""
    if not query_names.is_owner(session, label):
        raise query_names.no_owner(session, label)
    return _of(session, f"machines of {label}", f"/owners/{quote(label)}", "owner", label)


def atom(feed: Feed, origin: str, site_name: str) -> str:
    own_path = f"{feed.path.rstrip('/')}/feed.atom"
    return (
        xml_templates()
        .get_template("feed.atom")
        .render(feed=feed, own_path=own_path, origin=origin, site_name=site_name)
    )


def _of(session: Session, title: str, path: str, column: str, value: str) -> Feed:
    entries = [
        *_changes(session, TABLE.c[column] == value),
        *_results(session, {column.removesuffix("_slug"): value}),
    ]
    entries.sort(key=lambda entry: (entry.at, entry.id), reverse=True)
    return Feed(title, path, tuple(entries[:MOST_ENTRIES]))


def _results(session: Session, wanted: dict[str, str]) -> tuple[Entry, ...]:
    """The newest ranked results; not those whose figure is held."""
    filters = ResultPageFilters.model_validate({**wanted, "ranked": True, "limit": MOST_ENTRIES})
    rows, _ = stored_results.results_page(session, filters)
    return tuple(
        Entry(row.submission_id, f"/results/{row.submission_id}", _title(row), "", row.received_at)
        for row in stored_figures.free(session, [row for _, row in rows])
    )


def _changes(session: Session, condition: ColumnElement[bool]) -> list[Entry]:
    query = (
        select(TABLE.c.machine_id, TABLE.c.result_id)
        .where(TABLE.c.level == "machine", condition, TABLE.c.runs >= 2 * LEAST_RUNS)
        .order_by(TABLE.c.runs.desc(), TABLE.c.id)
        .limit(MOST_HISTORIES)
    )
    return [
        entry
        for machine_id, result_id in session.connection().execute(query).all()
        for entry in _changes_of(session, machine_id, result_id)
    ]


def _changes_of(session: Session, machine_id: str, result_id: str) -> Iterable[Entry]:
    """Changes, dated by the arrival of the first result of the new level."""
    for change in changes(session, machine_id, result_id):
        row = session.get_one(Measurement, change.result_id)
        environment = session.get_one(EnvironmentRow, row.environment_id)
        words = in_words(change, {"os": {"name": environment.os}})
        setup = f"{row.workload}, {row.framework} {row.recipe} on {row.device}"
        causes = "; ".join(words.causes) or "no known property of machine or software changed"
        yield Entry(
            f"{change.result_id}#change",
            f"/results/{change.result_id}",
            f"{row.hardware}, machine {machine_id[:8]}: {words.words} since "
            f"{change.started_at:%Y-%m-%d}, {setup}",
            f"{words.words} ({words.interval}): {causes}",
            row.received_at,
        )


def _title(row: Measurement) -> str:
    speed = speeds.words(row.samples_per_second or 0, row.workload)
    return f"{row.hardware}: {row.workload} at {speed}, {row.framework} {row.recipe}"
