"""Replay a log into an empty database: what depends on earlier entries, and the figures."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import insert, select
from sqlmodel import Session

from bench_protocol.base.errors import ProtocolError
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.payload.acts import ChallengeIssued
from bench_protocol.signing import envelope
from bench_protocol.training import recomputation
from bench_protocol.training.recomputation import Draw

from ..answers import stored_figures
from ..answers.criteria import Criteria
from ..db.lists import among
from ..db.store import Store
from ..db.tables import Challenge, LogEntry, RecomputeJob, SigningKey, Submission, Table, table_of
from ..db.upsert import insert_new
from ..ingest import key_events, key_registry, moderation
from ..log.server_keys import Identity
from ..projection.projector import Projector
from ..ranking.rows import RESULTS
from .chunk import Fault, Verified
from .figures import Boards, Level, of_figure
from .shown import Record


class LeftOut(NamedTuple):
    """A job that was not computed. ``log_index``: of its log entry; ``first_index``: of the job's
    first result that is shown."""

    log_index: int
    first_index: int
    draw: Draw


class Replay:
    """Accepts verified entries again, in their order, and projects those before ``as_of``."""

    def __init__(self, identity: Identity, as_of: int) -> None:
        self._identity = identity
        self._as_of = as_of
        self._store = Store("sqlite:///:memory:")
        Table.metadata.create_all(self._store.engine)
        self._boards: Boards | None = None
        self._challenges: dict[str, ChallengeIssued] = {}

    def accept(self, entries: Sequence[Verified]) -> list[Fault]:
        """Accept entries; the faults are of those that should not be in the log."""
        before = [item for item in entries if item.record["log_index"] < self._as_of]
        faults = [*self._accepted(before)]
        if later := entries[len(before) :]:
            self.boards()
            faults += self._accepted(later)
        return faults

    def boards(self) -> Boards:
        """The figures of every set-up of every hardware, from the entries before ``as_of``: call it
        once they are accepted."""
        if self._boards is None:
            Projector(self._store).catch_up()
            with self._store.reading() as session:
                found = stored_figures.board_figures(session, CATALOGUE, Criteria())
            self._boards = dict(of_figure(figure) for board in found.values() for figure in board)
        return self._boards

    def levels(self) -> dict[int, Level]:
        """The levels of the results before ``as_of``, by the index of their entry."""
        self.boards()
        with self._store.reading() as session:
            rows = session.connection().execute(LEVELS)
            return {row.log_index: Level(row.trust_level, row.rankable) for row in rows}

    def draws(self) -> Iterator[LeftOut]:
        """The jobs that a draw left out, of the results before ``as_of``."""
        self.boards()
        with self._store.reading() as session:
            for row in session.connection().execute(DRAWN):
                said = recomputation.parse(envelope.read(row.envelope).payload)
                if said.draw is not None:
                    yield LeftOut(row.log_index, row.first_index, said.draw)

    def close(self) -> None:
        self._store.close()

    def _accepted(self, entries: Sequence[Verified]) -> Iterator[Fault]:
        with self._store.writing() as session:
            for are_results, group in groupby(entries, lambda item: item.result is not None):
                if are_results:
                    yield from self._accept_results(session, list(group))
                    continue
                for item in group:
                    try:
                        _accept(session, self._identity, item)
                    except (ProtocolError, KeyError, ValueError) as error:
                        yield _fault(item, error)

    def _accept_results(self, session: Session, items: Sequence[Verified]) -> Iterator[Fault]:
        connection = session.connection()
        signers = {item.opened.signatures[0].key_id for item in items}
        enrolled = set(connection.scalars(ENROLLED, {"ids": sorted(signers)}))
        challenges, submissions = [], []
        for item in items:
            try:
                if (signer := item.opened.signatures[0].key_id) not in enrolled:
                    raise key_registry.unknown_key(signer)
                issued = item.challenge
                if issued is not None and self._is_new(issued):
                    challenges.append(_challenge_row(issued))
                if item.result is not None:
                    row = item.result.row(None if issued is None else issued.id)
                    submissions.append(row | {"outlier": _outlier(item.record)})
            except (ProtocolError, KeyError, ValueError) as error:
                yield _fault(item, error)
        if challenges:
            connection.execute(insert(_CHALLENGES), challenges)
        stored = insert_new(connection, _SUBMISSIONS, submissions)
        taken = {row["id"] for row in submissions}
        entries = [_entry(item) for item in items if item.record["result_id"] in stored]
        if entries:
            connection.execute(insert(_ENTRIES), entries)
        for item in items:
            if item.record["result_id"] in taken - stored:
                yield _fault(item, ValueError("another entry has its payload, repeat or id"))

    def _is_new(self, issued: ChallengeIssued) -> bool:
        """Whether a challenge was not shown before; ValueError if another one of its id was."""
        shown = self._challenges.setdefault(issued.id, issued)
        if (shown.nonce, shown.key_id) != (issued.nonce, issued.key_id):
            raise ValueError("its challenge is of another result")
        return shown is issued


def _fault(item: Verified, error: Exception) -> Fault:
    return Fault(item.record["log_index"], f"it should not be there: {error}")


def _accept(session: Session, identity: Identity, item: Verified) -> None:
    record, opened = item.record, item.opened
    if record["kind"] == "key_event":
        if key_events.apply(session, identity, opened, record["logged_at"]) is None:
            raise ValueError("another event did the same before")
    elif record["kind"] == "act":
        act = moderation.verified(session, identity, opened)
        moderation.require_possible(session, act)
        moderation.change_keys(session, act)
    elif record["kind"] == "recomputation":
        said = recomputation.parse(opened.payload)
        issued = session.get(Challenge, said.challenge)
        if issued is not None and issued.nonce != said.nonce:
            raise ValueError("its nonce is not that of its challenge")
    session.flush()
    session.connection().execute(insert(_ENTRIES), [_entry(item)])


def _entry(item: Verified) -> dict[str, Any]:
    record = item.record
    return {
        "log_index": record["log_index"],
        "kind": record["kind"],
        "commitment": bytes.fromhex(record["commitment"]),
        "envelope": None if item.result else envelope.encode(item.opened),
        "submission_id": record["result_id"],
        "logged_at": record["logged_at"],
    }


def _challenge_row(issued: ChallengeIssued) -> dict[str, Any]:
    return {
        "id": issued.id,
        "nonce": issued.nonce,
        "key_id": issued.key_id,
        "issued_at": datetime.fromisoformat(issued.issued_at),
        "expires_at": datetime.fromisoformat(issued.expires_at),
        "used": True,
    }


def _outlier(record: Record) -> str | None:
    """What the server says that its outlier check found. It can only lower a trust level or hold a
    result back, and cannot be repeated: results of other owners may be withdrawn since."""
    return None if record["outlier"] is None else record["outlier"].as_text()


# Statements, built once.
_ENTRIES, _SUBMISSIONS, _CHALLENGES = map(table_of, (LogEntry, Submission, Challenge))
_KEYS, _JOBS = map(table_of, (SigningKey, RecomputeJob))
ENROLLED = select(_KEYS.c.key_id).where(among(_KEYS.c.key_id, "ids"))
LEVELS = select(RESULTS.c.log_index, RESULTS.c.trust_level, RESULTS.c.rankable)
# A job without the key of a result is known from its log entry alone.
DRAWN = (
    select(_ENTRIES.c.log_index, _ENTRIES.c.envelope, _JOBS.c.first_index)
    .join(_JOBS, _JOBS.c.logged_index == _ENTRIES.c.log_index)
    .where(_JOBS.c.key_id != "")
    .order_by(_ENTRIES.c.log_index)
)
