"""Witnessed runs: their state while they last, and the speeds of a machine that the log states."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlmodel import Session, col, select

from bench_protocol.training.speed_run import SAMPLES_PER_SEGMENT

from ..db.tables import SigningKey, WitnessedSpeed
from ..ingest import speed_runs
from . import statements
from .types import ReceiptAnswer

MOST = 20
State = Literal["begun", "opened", "waiting", "witnessed", "refuted"]


@dataclass(frozen=True)
class WitnessedSpeedAnswer:
    """A machine of a key trained at no less than ``samples_per_second`` between ``begun_at`` and
    ``committed_at``, by the server's clock. Framework, device, machine and the agent's own rate are
    claims of the agent."""

    log_index: int
    key_id: str
    machine_id: str
    framework: str
    device: str
    samples_per_second: int
    agents_samples_per_second: float
    begun_at: datetime
    committed_at: datetime


@dataclass(frozen=True)
class WitnessedSpeedPage:
    """The newest witnessed speeds of a machine, the newest first, each with its statement."""

    speeds: tuple[WitnessedSpeedAnswer, ...]
    statements: tuple[dict[str, Any], ...]
    receipts: tuple[ReceiptAnswer, ...]


@dataclass(frozen=True)
class SpeedRunAnswer:
    """A witnessed run. ``state``: begun; opened (its segments are awaited); waiting (for the
    recomputation); witnessed; or refuted, with the ``reason``."""

    id: str
    state: State
    begun_at: datetime
    expires_at: datetime
    committed_at: datetime | None
    segments_to_open: tuple[int, ...]
    reason: str | None
    log_index: int | None


def speed_run(session: Session, run_id: str) -> SpeedRunAnswer:
    """A run that has not ended, or ended less than a day ago.

    Raises:
        NotFound: there is none.
    """
    row = speed_runs.run_with_id(session, run_id)
    state: State = "begun" if row.root is None else "opened"
    if row.complete:
        state = "waiting"
    if row.outcome is not None:
        state = "witnessed" if row.outcome == "witnessed" else "refuted"
    return SpeedRunAnswer(
        id=row.challenge_id,
        state=state,
        begun_at=row.begun_at,
        expires_at=row.expires_at,
        committed_at=row.committed_at,
        segments_to_open=speed_runs.to_open(row),
        reason=row.reason,
        log_index=row.statement_index,
    )


def of_machine(session: Session, machine_id: str) -> tuple[WitnessedSpeedAnswer, ...]:
    """The newest witnessed speeds of a machine, without those of a key that was compromised."""
    rows = session.exec(
        select(WitnessedSpeed, SigningKey.compromised_since)
        .join(SigningKey, col(SigningKey.key_id) == col(WitnessedSpeed.key_id))
        .where(WitnessedSpeed.machine_id == machine_id)
        .order_by(col(WitnessedSpeed.log_index).desc())
        .limit(MOST)
    ).all()
    return tuple(_answer(row) for row, since in rows if since is None or row.log_index < since)


def page(session: Session, machine_id: str) -> WitnessedSpeedPage:
    """The speeds of a machine with the server's statements and their receipts."""
    speeds = of_machine(session, machine_id)
    said = statements.of_entries(session, [speed.log_index for speed in speeds])
    return WitnessedSpeedPage(speeds, said.statements, said.receipts)


def _answer(row: WitnessedSpeed) -> WitnessedSpeedAnswer:
    samples = row.segments * SAMPLES_PER_SEGMENT
    return WitnessedSpeedAnswer(
        log_index=row.log_index,
        key_id=row.key_id,
        machine_id=row.machine_id,
        framework=row.framework,
        device=row.device,
        samples_per_second=row.samples_per_second,
        agents_samples_per_second=samples * 1e9 / row.training_ns,
        begun_at=row.begun_at,
        committed_at=row.committed_at,
    )
