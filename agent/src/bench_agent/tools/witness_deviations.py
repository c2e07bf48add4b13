"""How far the losses of real sessions are from the recomputation: what limits are chosen from.

``python -m bench_agent.tools.witness_deviations --framework jax --recipe tuned`` opens a session of
each workload as a repeat does, reads its loss after the witness's steps, the ones between two
readings in one call, and prints how far each loss lies outside of its recomputed range. The limits
of ``bench_protocol.witness_verdict`` are about three times what this printed.
"""

import argparse
import sys
from collections.abc import Sequence

from bench_protocol import seeded, witness_verdict
from bench_protocol.catalogue import CATALOGUE, workload_named
from bench_protocol.matrix import Cell, Device
from bench_protocol.recompute import Band, timed_job, witness_band
from bench_protocol.witness_steps import witness_steps
from bench_protocol.workloads import Workload

from .. import engines
from ..engines.seam import Data
from ..worker import witness


def main(arguments: Sequence[str]) -> int:
    """Print one line a session."""
    parser = argparse.ArgumentParser(prog="witness_deviations", description=__doc__)
    parser.add_argument("--framework", choices=engines.names(), required=True)
    parser.add_argument("--recipe", default="tuned")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--seeds", nargs="+", default=["0" * 32, "7" * 32])
    parser.add_argument("--workloads", nargs="+", default=[one.name for one in CATALOGUE])
    chosen = parser.parse_args(arguments)
    for name in chosen.workloads:
        workload = workload_named(name)
        cell = Cell(
            workload=workload.name,
            workload_digest=workload.digest,
            framework=chosen.framework,
            device=Device(kind=chosen.device),
            recipe=chosen.recipe,
            batch_size=workload.batch_size,
            precision=chosen.precision,
            data="generated",
        )
        for seed in chosen.seeds:
            steps = witness_steps(workload, cell.batch_size)
            band = witness_band(timed_job(workload, cell.batch_size, seed), steps[-1])
            losses = session_losses(workload, cell, seed, steps)
            verdict = witness_verdict.judge(cell, workload, steps, losses, steps[-1], band)
            off = " ".join(f"{off:.1e}" for off in deviations(steps, losses, band))
            sys.stdout.write(f"{cell} seed {seed[:4]} steps {steps}: {off} ({verdict.kind})\n")
            sys.stdout.flush()
    return 0


def session_losses(workload: Workload, cell: Cell, seed: str, steps: Sequence[int]) -> list[float]:
    """Losses of a session that is opened as timed ones are, after each of ``steps``."""
    engine = engines.engine_named(cell.framework)
    engine.load(workload, cell)
    train = seeded.generated_data(workload.data_set, "train")
    test = seeded.generated_data(workload.data_set, "test")
    order = seeded.order(len(train[1]), 0, seed)
    weights = seeded.initial_weights(workload, seed)
    session = engine.open(workload, cell, weights, Data(*train, *test, order))
    try:
        return [loss or 0.0 for loss in witness.losses_after(session, steps)]
    finally:
        session.close()


def deviations(steps: Sequence[int], losses: Sequence[float], band: Band) -> list[float]:
    """How far each loss lies outside of its range, as verdicts count it."""
    return [
        witness_verdict.deviation(loss, band.low.losses[step - 1], band.high.losses[step - 1])
        for step, loss in zip(steps, losses, strict=True)
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
