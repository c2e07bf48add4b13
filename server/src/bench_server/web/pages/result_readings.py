"""Readings of a result's timed session beside their recomputation."""

from dataclasses import dataclass
from operator import truediv

from sqlmodel import Session

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.payload.result import Result
from bench_protocol.training import recomputation
from bench_protocol.training.reading import parts, parts_recomputed

from ...answers.types.results import ResultAnswer
from ...checks.verdicts import CheckVerdict
from ...recompute import jobs


@dataclass(frozen=True)
class ReadingRow:
    """One reading of a part (:class:`bench_protocol.training.reading.Part`). ``step_ms``: of its
    fastest call; ``low``, ``high``: of the recomputed loss, None where it was not recomputed."""

    kind: str
    first: int
    steps: int
    per_epoch: int
    step_ms: float
    loss: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Readings:
    """``entry``: the log entry of the recomputation. ``counted``: steps by the session's own count;
    ``expected``: those of first step, warm-up and timing."""

    witness: CheckVerdict
    entry: int | None
    counted: int
    expected: int
    tensors: int
    rows: tuple[ReadingRow, ...]


def readings_of(session: Session, answer: ResultAnswer, signed: Result) -> Readings | None:
    """The readings that a result has; None where it has none, or its workload has changed."""
    measured, cell, workload = signed.measurement, signed.cell, workload_named(signed.cell.workload)
    verdict = next((one for one in answer.verdicts or () if one.check == "witness"), None)
    if measured is None or measured.witness is None or verdict is None:
        return None
    job = recomputation.job(signed)
    stated = jobs.stated(session.connection(), [job.key]).get(job.key) if job else None
    figures = stated.said.figures if stated else None
    told, blocks = measured.witness, measured.blocks
    done = parts(workload, cell.batch_size, signed.seed)
    if workload.digest != cell.workload_digest or len(told.readings) != len(done):
        return None
    right = dict(zip(parts_recomputed(done), figures.readings if figures else (), strict=False))
    rows = [
        ReadingRow(
            *(part.kind, part.first, part.steps, part.per_epoch),
            min(map(truediv, reading.durations_ns, part.calls(blocks.steps_per_block))) / 1e6,
            reading.loss,
            *(right[part].loss_range if part in right else (None, None)),
        )
        for part, reading in zip(done, told.readings, strict=True)
    ]
    return Readings(
        witness=verdict,
        entry=stated.log_index if stated and figures else None,
        counted=told.step_count,
        expected=1 + blocks.warm_up_steps + blocks.steps,
        tensors=len(told.movements),
        rows=tuple(rows),
    )
