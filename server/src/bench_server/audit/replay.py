"""Replay a log into an empty database: what depends on earlier entries, and the figures."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from pydantic import TypeAdapter
from sqlmodel import Session

from bench_protocol import acts, speed_run
from bench_protocol.catalogue import CATALOGUE
from bench_protocol.errors import ProtocolError

from ..answers import leaderboard_sql
from ..answers.filters import BoardFilters
from ..db.store import Store
from ..db.tables import Challenge, LogEntry, Submission, Table
from ..ingest import key_events, key_registry, moderation
from ..ingest.verdicts import Finding
from ..log.server_keys import Identity
from ..projection.projector import Projector
from ..ranking.figures import Setup
from .chunk import Fault, Record, Verified

FINDING = TypeAdapter(Finding)


class Replay:
    """Accepts verified entries again, in their order, and projects those before ``as_of``."""

    def __init__(self, identity: Identity, as_of: int) -> None:
        self._identity = identity
        self._as_of = as_of
        self._store = Store("sqlite:///:memory:")
        Table.metadata.create_all(self._store.engine)
        self._speeds: dict[str, float] | None = None

    def accept(self, entries: Sequence[Verified]) -> list[Fault]:
        """Accept entries; the faults are of those that should not be in the log."""
        before = [item for item in entries if item.record["log_index"] < self._as_of]
        faults = [*self._accepted(before)]
        if later := entries[len(before) :]:
            self.speeds()
            faults += self._accepted(later)
        return faults

    def speeds(self) -> dict[str, float]:
        """Samples per second of every set-up of every hardware (:func:`set_up_name`), from the
        entries before ``as_of``: call it once they are accepted."""
        if self._speeds is None:
            Projector(self._store).catch_up()
            filters = BoardFilters.model_validate({"batch_size": "any", "precision": "any"})
            with self._store.reading() as session:
                boards = leaderboard_sql.figures(session, CATALOGUE, filters)
            self._speeds = {
                set_up_name(
                    figure.setup._asdict() | {"hardware_slug": figure.hardware_slug},
                    figure.subject.workload,
                ): 1e9 / figure.ns_per_sample
                for figures in boards.values()
                for figure in figures
            }
        return self._speeds

    def close(self) -> None:
        """Forget the database."""
        self._store.close()

    def _accepted(self, entries: Sequence[Verified]) -> Iterator[Fault]:
        with self._store.writing() as session:
            for item in entries:
                try:
                    _accept(session, self._identity, item)
                except (ProtocolError, KeyError, ValueError) as error:
                    yield Fault(item.record["log_index"], f"it should not be there: {error}")


def set_up_name(row: Record, workload: str) -> str:
    """A set-up of a hardware, as one word."""
    parts = (workload, row["hardware_slug"], *(str(row[name]) for name in Setup._fields))
    return " ".join(parts)


def _accept(session: Session, identity: Identity, item: Verified) -> None:
    """Do with an entry what its acceptance did, and store what the projector reads."""
    record, opened = item.record, item.opened
    at = datetime.fromisoformat(record["logged_at"])
    kind = record["kind"]
    if kind == "key_event":
        if key_events.apply(session, identity, opened, at) is None:
            raise ValueError("the key was enrolled before")
    elif kind == "act":
        act = moderation.verified(session, identity, opened)
        moderation.require_possible(session, act)
        moderation.change_keys(session, act)
    elif kind == "speed_run":
        key_registry.key_with_id(session, speed_run.parse(opened.payload).key_id)
    elif kind == "result":
        _accept_result(session, item, at)
    session.add(
        LogEntry(
            log_index=record["log_index"],
            kind=kind,
            commitment=bytes.fromhex(record["commitment"]),
            envelope=None if kind == "result" else item.raw,
            submission_id=record["result_id"],
            logged_at=at,
        )
    )
    session.flush()


def _accept_result(session: Session, item: Verified, at: datetime) -> None:
    key_registry.key_with_id(session, item.row["key_id"])  # enrolled before
    if item.challenge is not None:
        _store_challenge(session, item.challenge)
    session.add(
        Submission(
            **item.row,
            id=item.record["result_id"],
            received_at=at,
            outlier=_outlier(item.record),
        )
    )
    session.flush()


def _store_challenge(session: Session, issued: acts.ChallengeIssued) -> None:
    stored = session.get(Challenge, issued.id)
    if stored is None:
        session.add(
            Challenge(
                id=issued.id,
                nonce=issued.nonce,
                key_id=issued.key_id,
                issued_at=datetime.fromisoformat(issued.issued_at),
                expires_at=datetime.fromisoformat(issued.expires_at),
            )
        )
        session.flush()
    elif (stored.nonce, stored.key_id) != (issued.nonce, issued.key_id):
        raise ValueError("its challenge is of another result")


def _outlier(record: Record) -> str | None:
    """What the server says that its outlier check found. It can only lower a trust level or hold a
    result back, and cannot be repeated: results of other owners may be withdrawn since."""
    finding = record.get("outlier")
    return None if finding is None else FINDING.validate_python(finding).as_text()
