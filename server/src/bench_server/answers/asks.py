"""Asks: the set-ups that are wanted again, the most wanted first."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlmodel import Session, col

from bench_protocol.trust.asks import RATES, REASONS, WORDS, Reason

from ..db.tables import Ask, AskDay, Measurement
from .types.shared_fields import InSetup

MOST_ASKS = 200


@dataclass(frozen=True)
class AskAnswer(InSetup):
    """A set-up that was drawn."""

    id: str
    hardware: str
    hardware_slug: str
    workload: str
    workload_digest: str
    reason: str
    why: str
    rate: float
    result: str | None


@dataclass(frozen=True)
class AsksAnswer:
    """The newest draw: of one hardware, or of all."""

    day: str | None
    root: str | None
    size: int | None
    asks: tuple[AskAnswer, ...]


def asks(session: Session, hardware_slug: str | None = None) -> AsksAnswer:
    """The asks of the newest draw, at most ``MOST_ASKS``. An unknown hardware has none."""
    day = session.scalars(select(AskDay).order_by(col(AskDay.day).desc()).limit(1)).first()
    if day is None:
        return AsksAnswer(None, None, None, ())
    query = select(Ask).where(col(Ask.day) == day.day)
    if hardware_slug is not None:
        query = query.where(col(Ask.hardware_slug) == hardware_slug)
    rows = sorted(session.scalars(query), key=lambda ask: (REASONS.index(ask.reason), ask.id))
    return AsksAnswer(day.day, day.root, day.size, tuple(map(_answer, rows[:MOST_ASKS])))


def answered_by(session: Session, machine_id: str) -> int:
    query = select(func.count(col(Measurement.ask_id).distinct())).where(
        col(Measurement.machine_id) == machine_id, col(Measurement.rankable)
    )
    return int(session.connection().scalar(query) or 0)


def _answer(ask: Ask) -> AskAnswer:
    reason: Reason = ask.reason  # type: ignore[assignment]
    derived: dict[str, Any] = {"why": WORDS[reason], "rate": RATES[reason], "result": ask.result_id}
    columns = {
        name: getattr(ask, name) for name in AskAnswer.__dataclass_fields__ if name not in derived
    }
    return AskAnswer(**columns, **derived)
