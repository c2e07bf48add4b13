"""The worker: takes a job, computes it unless a draw leaves it out, logs a signed recomputation."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from threading import Event
from typing import TYPE_CHECKING, Any

from sqlmodel import Session

from bench_protocol.base.errors import DataProblem
from bench_protocol.catalogue import nonces
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.workloads import DataSet, Workload
from bench_protocol.signing import envelope
from bench_protocol.signing.receipts import open_checkpoint
from bench_protocol.training import recomputation
from bench_protocol.training.recomputation import (
    RECOMPUTATION_PAYLOAD_TYPE,
    Draw,
    Recomputation,
    SessionJob,
)
from bench_protocol.training.recomputed import Figures

from ..db.store import UNAVAILABLE, Store, utc_now
from ..db.tables import RecomputeJob
from ..log import reader, writer
from ..log.server_keys import Authority
from . import jobs

if TYPE_CHECKING:
    from .real_data import RealData, RealSplit

IDLE_SECONDS = 1.0
RETRY_SECONDS = 5.0
# Takes workload, nonce and batch size; and the training split where data is real.
Compute = Callable[..., Figures]
logger = logging.getLogger(__name__)


def compute(workload: Workload, nonce: str, batch_size: int, *real: Any) -> Figures:
    """Recompute a session in NumPy; see :func:`bench_protocol.recompute.figures`."""
    from bench_protocol.recompute import figures  # here: only this needs NumPy

    return figures(workload, nonce, batch_size, *real)


def generated_digest(data_set: DataSet) -> str:
    """The digest of generated data; see :func:`bench_protocol.recompute.generated_digest`."""
    from bench_protocol import recompute

    return recompute.generated_digest(data_set)


@dataclass(frozen=True)
class Recomputer:
    """Works on a database's queue; any number may. ``budget_seconds``: processor seconds of a key
    a day (UTC). ``real``: the real data that is here; jobs on other real data stay in the queue."""

    store: Store
    authority: Authority
    budget_seconds: float
    clock: Callable[[], datetime] = utc_now
    compute: Compute = compute
    processor_seconds: Callable[[], float] = time.process_time
    real: "RealData | None" = None

    def run(self, stop: Event) -> None:
        while not stop.is_set():
            try:
                idle = not self.step()
            except UNAVAILABLE:
                logger.exception("the database does not answer the recomputation")
                stop.wait(RETRY_SECONDS)
                continue
            if idle:
                stop.wait(IDLE_SECONDS)

    def drain(self) -> int:
        """Work until no job is free; returns the number of jobs."""
        count = 0
        while self.step():
            count += 1
        return count

    def step(self) -> bool:
        """Take one job and state its outcome; False if there is none.

        A job that fails is tried again when its lease ends.
        """
        row = jobs.take(self.store, self.clock(), self.real.workloads if self.real else ())
        if row is None:
            return False
        try:
            self._work(row)
        except Exception:
            logger.exception("job %s (%s) failed", row.id, row.workload)
        except BaseException:
            jobs.release(self.store, row.id)
            raise
        return True

    def _work(self, row: RecomputeJob) -> None:
        workload = workload_named(row.workload)
        if workload.digest != row.workload_digest:
            raise ValueError(f"the definition of {row.workload} has changed")
        data = jobs.data_of(row)
        job = SessionJob(workload, row.nonce, row.batch_size, data)
        draw = self._left_out(row)
        real = self._samples(job) if draw is None else None
        began = self.processor_seconds()
        figures = digest = None
        if draw is None:
            split = () if real is None else (real.train,)
            figures = self.compute(workload, job.nonce, job.batch_size, *split)
            digest = real.digest if real else generated_digest(workload.data_set)
        seconds = self.processor_seconds() - began
        said = Recomputation(
            challenge=row.challenge_id,
            nonce=job.nonce,
            workload=workload.name,
            workload_digest=workload.digest,
            batch_size=job.batch_size,
            seed=row.seed,
            server_origin=self.authority.origin,
            verdict="computed" if figures else "not_drawn",
            figures=figures,
            draw=draw,
            data=data,
            data_digest=digest,
        )
        self._state(row.id, said, seconds)

    def _samples(self, job: SessionJob) -> "RealSplit | None":
        """The real data of a job; None if generated; ``DataProblem`` if it is no longer here."""
        if job.data == "generated":
            return None
        if self.real is None:
            raise DataProblem(f"there is no data of {job.workload.name} here")
        return self.real.samples(job.workload)

    def _left_out(self, row: RecomputeJob) -> Draw | None:
        midnight = self.clock().replace(hour=0, minute=0, second=0, microsecond=0)
        with self.store.reading() as session:
            spent = jobs.spent_seconds(session, row.key_id, midnight)
            if spent < self.budget_seconds:
                return None
            draw = self._draw(session, row)
        return None if recomputation.is_drawn(draw) else draw

    def _draw(self, session: Session, row: RecomputeJob) -> Draw:
        note = reader.first_checkpoint(session, row.first_index).note
        checkpoint = open_checkpoint(note, self.authority.log_key)
        return Draw(
            size=checkpoint.size,
            root=checkpoint.root.hex(),
            seed=nonces.seed_of(row.nonce, row.workload_digest),
            share=recomputation.DRAWN_SHARE,
        )

    def _state(self, job_id: str, said: Recomputation, seconds: float) -> None:
        """Sign and log a recomputation, unless another worker has stated the job meanwhile."""
        sealed = envelope.seal(
            RECOMPUTATION_PAYLOAD_TYPE, recomputation.payload(said), self.authority.challenge
        )
        leaf = writer.Leaf("recomputation", envelope.read(sealed))
        now = self.clock()
        with self.store.writing_in_turn() as session:
            writer.take_turn(session)
            row = session.get_one(RecomputeJob, job_id)
            if jobs.is_stated(row):
                return
            (receipt,) = writer.append(session, self.authority, [leaf], now)
            row.logged_index = receipt.index
            row.processor_seconds = seconds
            row.settled_at = now
            session.add(row)
