"""The messages of a webhook: log entries in words, derived from the projected tables.

A message's id follows from the webhook, the log entry and the event, so that the same event has the
same id, also after a restart or a restored backup.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal, NamedTuple

from sqlalchemy import Row, and_, select
from sqlmodel import Session

from bench_protocol.base import strict_json
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.payload import acts
from bench_protocol.payload.acts import Act
from bench_protocol.signing import envelope

from ..answers import leaderboard
from ..answers.filters import BoardFilters
from ..answers.history import Change, changes_with
from ..db.tables import LogEntry, Webhook, table_of
from ..ingest.moderation import FINAL
from ..projection import position
from ..projection.eligibility import HELD_BACK
from ..ranking.rows import RESULTS

Kind = Literal["result.new", "result.withheld", "machine.changed", "ranks.changed"]
# Log entries that are turned into messages at once.
BATCH = 64
MOST_MOVED = 50
MOST_CAUSES = 8
# By workload and hardware's slug.
Ranks = Mapping[str, Mapping[str, int]]
_LOG = table_of(LogEntry)
SETUP = ("workload", "framework", "device", "recipe", "batch_size", "precision", "data", "timing")


class Message(NamedTuple):
    """A message to a webhook; ``body`` is JSON. ``submission_id``: the result that it is about."""

    id: str
    body: str
    submission_id: str | None


class Collected(NamedTuple):
    """The messages of the next log entries, the index after these, and the ranks then."""

    messages: tuple[Message, ...]
    position: int
    ranks: Ranks


def collect(session: Session, hook: Webhook, lag: position.Lag, origin: str) -> Collected:
    """The messages of the next projected entries.

    Args:
        lag: of the projection. Ranks are compared only while it is small: boards are partial
            during a reindex.
        origin: the name of the server, which every message has.
    """
    end = min(lag.position, hook.position + BATCH)
    made = [
        _message(hook, kind, about, at, {"server_origin": origin, **data})
        for kind, about, at, data in _of_entries(session, hook, end)
    ]
    told: Ranks = strict_json.loads(hook.ranks.encode())
    ranks = ranks_of(session, hook) if lag.entries <= BATCH else told
    of_newest = select(_LOG.c.logged_at).where(_LOG.c.log_index == end - 1)
    newest = session.connection().execute(of_newest).scalar_one()
    for workload, moved in _moved(told, ranks):
        data = {"server_origin": origin, "workload": workload, "as_of": end, **moved}
        made.append(_message(hook, "ranks.changed", f"{end} {workload}", newest, data))
    return Collected(tuple(made), end, ranks)


def ranks_of(session: Session, hook: Webhook) -> Ranks:
    """The ranks of the webhook's hardware on the default board of each workload."""
    slugs = _hardware_of(session, hook)
    boards = leaderboard.standings(session, CATALOGUE, BoardFilters.model_validate({}))
    return {
        board.workload.name: ranks
        for board in boards
        if (
            ranks := {
                row.figure.hardware_slug: row.rank
                for row in board.rows
                if row.rank is not None and (slugs is None or row.figure.hardware_slug in slugs)
            }
        )
    }


def _hardware_of(session: Session, hook: Webhook) -> set[str] | None:
    """The slugs of the webhook's hardware; None for all."""
    if hook.hardware_slug is not None:
        return {hook.hardware_slug}
    if hook.machine_id is None:
        return None
    of_machine = RESULTS.c.machine_id == hook.machine_id
    found = select(RESULTS.c.hardware_slug).where(of_machine).distinct()
    return set(session.connection().scalars(found))


Event = tuple[Kind, str, datetime, dict[str, Any]]


def _of_entries(session: Session, hook: Webhook, end: int) -> Iterator[Event]:
    """The events of log entries from the webhook's position on."""
    query = (
        select(_LOG.c.log_index.label("entry"), _LOG.c.kind, _LOG.c.envelope, _LOG.c.logged_at)
        .add_columns(*(c for c in RESULTS.c))
        .join_from(_LOG, RESULTS, RESULTS.c.submission_id == _LOG.c.submission_id)
        .where(and_(_LOG.c.log_index >= hook.position, _LOG.c.log_index < end))
        .where(_LOG.c.kind.in_(("result", "act")))
        .order_by(_LOG.c.log_index)
    )
    if hook.machine_id is not None:
        query = query.where(RESULTS.c.machine_id == hook.machine_id)
    if hook.hardware_slug is not None:
        query = query.where(RESULTS.c.hardware_slug == hook.hardware_slug)
    for row in session.connection().execute(query).all():
        if row.moderation == "hidden":  # by its sender
            continue
        about = f"{row.entry}"
        if row.kind == "act":
            act = acts.parse(Act, envelope.read(row.envelope).payload)
            if act.act in FINAL:
                yield "result.withheld", about, row.logged_at, _result(row, act.reason)
            continue
        yield "result.new", about, row.logged_at, _result(row)
        if row.moderation is None and (row.unranked_reason or "").startswith(HELD_BACK):
            yield "result.withheld", about, row.logged_at, _result(row)
        if row.rankable and (hook.machine_id or hook.hardware_slug):
            for change in changes_with(session, row.machine_id, row.submission_id):
                data = _change(row, change)
                yield "machine.changed", f"{about} {change.run_id}", row.logged_at, data


def _result(row: Row[Any], reason: str | None = None) -> dict[str, Any]:
    return {
        "log_index": row.log_index,
        "result_id": row.submission_id,
        "path": f"/results/{row.submission_id}",
        **_about(row),
        "samples_per_second": row.samples_per_second,
        "trust_level": row.trust_level,
        "ranked": row.rankable,
        "unranked_reason": reason or row.unranked_reason,
    }


def _change(row: Row[Any], change: Change) -> dict[str, Any]:
    return {
        "result_id": change.result_id,
        "path": f"/results/{change.result_id}",
        **_about(row),
        "run_id": change.run_id,
        "started_at": _utc(change.started_at),
        "speed_up": change.speed_up,
        "speed_up_low": change.speed_up_low,
        "speed_up_high": change.speed_up_high,
        "changed": [asdict(difference) for difference in change.changed[:MOST_CAUSES]],
    }


def _about(row: Row[Any]) -> dict[str, Any]:
    named = ("machine_id", "hardware", "hardware_slug", *SETUP)
    return {name: getattr(row, name) for name in named}


def _moved(before: Ranks, after: Ranks) -> Iterator[tuple[str, dict[str, Any]]]:
    """By workload, the hardware whose rank changed, the best rank first; null is no rank."""
    for workload in sorted({*before, *after}):
        old, new = before.get(workload, {}), after.get(workload, {})
        moved = [
            {"hardware_slug": slug, "rank_before": old.get(slug), "rank": new.get(slug)}
            for slug in sorted({*old, *new}, key=lambda slug: (new.get(slug, len(new) + 1), slug))
            if old.get(slug) != new.get(slug)
        ]
        if moved:
            yield workload, {"moved": moved[:MOST_MOVED], "more": len(moved[MOST_MOVED:])}


def _message(
    hook: Webhook, kind: Kind, about: str, at: datetime, data: Mapping[str, Any]
) -> Message:
    digest = hashlib.sha256(f"{hook.id} {kind} {about}".encode()).hexdigest()
    document = {"type": kind, "timestamp": _utc(at), "data": data}
    return Message(
        f"msg_{digest[:32]}", strict_json.dumps(document).decode(), data.get("result_id")
    )


def _utc(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def dump_ranks(ranks: Ranks) -> str:
    """Ranks as stored."""
    return strict_json.dumps(ranks).decode()
