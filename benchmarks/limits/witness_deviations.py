"""How far real sessions are from their recomputation. Limits of the witness rest on this."""

from collections.abc import Sequence

from bench_agent import engines
from bench_agent.engines.seam import Data
from bench_agent.worker import witness
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.witness import Rewound
from bench_protocol.recompute import Band, timed_job, witness_band
from bench_protocol.training import trace_limits, witness_verdict
from bench_protocol.training.witness_steps import witness_steps


def line(cell: Cell, seed: str) -> str:
    """Take the second reading of a session: how far each loss, and the movement that is farthest,
    lie outside of their recomputed range."""
    workload = workload_named(cell.workload)
    steps = witness_steps(workload, cell.batch_size)
    band = witness_band(timed_job(workload, cell.batch_size, seed), steps[-1])
    read = second_reading(workload, cell, seed, steps)
    verdict = witness_verdict.judge(cell, workload, steps, read.losses, band, rewound=read)
    off = " ".join(f"{off:.1e}" for off in deviations(steps, read.losses, band))
    moved = max(movement_deviations(read.movements, band))
    return f"steps {steps}: {off}; moved {moved:.1e} ({verdict.kind})"


def second_reading(workload: Workload, cell: Cell, seed: str, steps: Sequence[int]) -> Rewound:
    """The second reading of a session that is opened as timed ones are."""
    engine = engines.engine_named(cell.framework)
    engine.load(workload, cell)
    train = seeded.generated_data(workload.data_set, "train")
    test = seeded.generated_data(workload.data_set, "test")
    data = Data(*train, *test, seeded.order(len(train[1]), 0, seed))
    session = engine.open(workload, cell, seeded.initial_weights(workload, seed), data)
    try:
        return witness.rewound(session, workload, seed, data, cell.batch_size, steps)
    finally:
        session.close()


def deviations(steps: Sequence[int], losses: Sequence[float | None], band: Band) -> list[float]:
    """How far each loss lies outside of its range, as verdicts count it."""
    return [
        witness_verdict.deviation(
            loss or 0.0, band.low.losses[step - 1], band.high.losses[step - 1]
        )
        for step, loss in zip(steps, losses, strict=True)
    ]


def movement_deviations(movements: Sequence[float | None], band: Band) -> list[float]:
    """How far each movement lies outside of its range."""
    ends = zip(band.low.movements, band.high.movements, strict=True)
    return [
        witness_verdict.deviation(moved or 0.0, low, high, trace_limits.LEAST_MOVEMENT)
        for moved, (low, high) in zip(movements, ends, strict=True)
    ]
