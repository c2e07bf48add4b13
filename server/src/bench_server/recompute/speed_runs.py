"""Judge witnessed runs: recompute the opened segments, log a statement, delete the segments."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, delete, select, update

from bench_protocol.payload import acts
from bench_protocol.signing import envelope
from bench_protocol.training import speed_run
from bench_protocol.training.speed_run import OpenedState, Opening, SpeedRun, SpeedRunRoot

from ..db.store import Store
from ..db.tables import OpenedSegment, SpeedRunRow
from ..ingest import speed_runs as ingest
from ..log import writer
from ..log.server_keys import Authority
from .jobs import LEASE, is_free

Distances = Callable[[str, Mapping[int, OpenedState]], dict[int, float]]
logger = logging.getLogger(__name__)


def distances(seed: str, opened: Mapping[int, OpenedState]) -> dict[int, float]:
    """Recompute opened segments in NumPy; about 2 processor seconds each.

    Returns:
        The distance of each, :meth:`bench_protocol.recompute.segments.Segments.distance`.
    """
    from bench_protocol.recompute.segments import Segments  # here: only this needs NumPy

    segments = Segments(seed)
    return {number: segments.distance(number, state) for number, state in opened.items()}


@dataclass(frozen=True)
class Judge:
    """Judges the witnessed runs of one database; any number may do so at once."""

    store: Store
    authority: Authority
    clock: Callable[[], datetime]
    distances: Distances = distances

    def step(self) -> bool:
        """Judge the oldest complete run. One that fails is tried again when its lease ends; one
        that is interrupted at once.

        Returns:
            Whether there was one.
        """
        row = self._take()
        if row is None:
            return False
        try:
            self._settle(row.challenge_id, self._measured(row))
        except Exception:
            logger.exception("witnessed run %s failed", row.challenge_id)
        except BaseException:
            self._release(row.challenge_id)
            raise
        return True

    def _release(self, run_id: str) -> None:
        with self.store.writing() as session:
            of_run = col(SpeedRunRow.challenge_id) == run_id
            session.exec(update(SpeedRunRow).where(of_run).values(leased_until=None))

    def _take(self) -> SpeedRunRow | None:
        now = self.clock()
        with self.store.writing() as session:
            row = session.exec(
                select(SpeedRunRow)
                .where(*_free(now))
                .order_by(col(SpeedRunRow.committed_at))
                .limit(1)
                .with_for_update(skip_locked=True)
            ).first()
            if row is None:
                return None
            row.leased_until = now + LEASE
            session.add(row)
            return SpeedRunRow(**row.model_dump())

    def _measured(self, row: SpeedRunRow) -> tuple[Opening, ...]:
        with self.store.reading() as session:
            stored = ingest.bodies(session, row.challenge_id)
        root, segments = bytes.fromhex(row.root or ""), row.segments or 0
        opened = {
            number: speed_run.read_opened(stored[number], number, segments, root)
            for number in ingest.to_open(row)
        }
        found = self.distances(speed_run.seed_of(row.nonce, row.beacon), opened)
        return tuple(
            Opening(segment=number, distance=float(f"{distance:.4g}"))
            for number, distance in found.items()
        )

    def _settle(self, run_id: str, openings: tuple[Opening, ...]) -> None:
        now = self.clock()
        with self.store.writing_in_turn() as session:
            writer.take_turn(session)
            row = session.get_one(SpeedRunRow, run_id)
            if row.outcome is not None:
                return
            row.reason = speed_run.why_refuted(openings)
            if row.reason:
                row.outcome = "refuted"
            else:
                row.statement_index = self._log(session, _statement(row, openings), now)
                row.outcome = "witnessed"
            session.add(row)
            session.exec(delete(OpenedSegment).where(col(OpenedSegment.challenge_id) == run_id))

    def _log(self, session: Session, said: SpeedRun, now: datetime) -> int:
        sealed = envelope.seal(
            speed_run.STATEMENT_PAYLOAD_TYPE, acts.payload(said), self.authority.challenge
        )
        leaf = writer.Leaf("speed_run", envelope.read(sealed))
        (receipt,) = writer.append(session, self.authority, [leaf], now)
        return receipt.index


def are_due(session: Session, now: datetime) -> bool:
    """Whether a run waits for a judge."""
    return (
        session.exec(select(SpeedRunRow.challenge_id).where(*_free(now)).limit(1)).first()
        is not None
    )


def _statement(row: SpeedRunRow, openings: tuple[Opening, ...]) -> SpeedRun:
    said = acts.parse(SpeedRunRoot, (row.commitment or "").encode())
    committed_at = row.committed_at or row.begun_at
    return SpeedRun(
        challenge=row.challenge_id,
        nonce=row.nonce,
        beacon=row.beacon,
        draw=row.draw,
        key_id=row.key_id,
        server_origin=said.server_origin,
        workload_digest=speed_run.workload().digest,
        root=said.root,
        segments=said.segments,
        begun_at=_utc_text(row.begun_at),
        committed_at=_utc_text(committed_at),
        samples_per_second=speed_run.samples_per_second(said.segments, row.begun_at, committed_at),
        openings=openings,
        framework=said.framework,
        device=said.device,
        machine_hash=said.machine_hash,
        training_ns=said.training_ns,
    )


def _utc_text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _free(now: datetime) -> tuple[ColumnElement[bool], ...]:
    return (
        col(SpeedRunRow.complete).is_(True),
        col(SpeedRunRow.outcome).is_(None),
        is_free(col(SpeedRunRow.leased_until), now),
    )
