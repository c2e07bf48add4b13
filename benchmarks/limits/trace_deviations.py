"""Measure how far honest traces are from their recomputation. Limits rest on this.

``python -m benchmarks.limits.trace_deviations --framework torch --nonces 400`` trains the traces of
each small workload under nonces 1, 2, ... and prints the largest deviation of a loss and of a
movement, and under how many nonces the short traces are a wrong result: with constant limits alone,
and with those that also follow from the effect of rounding. One BLAS thread (``OMP_NUM_THREADS=1``)
is fastest.
"""

import argparse
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench_agent import engines
from bench_agent.engines.seam import Engine
from bench_agent.worker import conformance_trace
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.matrix import Cell, Device
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Trace
from bench_protocol.recompute import figures
from bench_protocol.training import conformance
from bench_protocol.training.recomputed import Figures
from bench_protocol.training.trace_limits import LEAST_MOVEMENT

WITHOUT_ROUNDING = {"rounding": (), "movements_rounding": ()}


@dataclass(frozen=True)
class Traced:
    """The traces of one nonce: largest relative deviations of both short ones and the long one,
    and whether the short ones are a wrong result, by constant limits and by those in use."""

    losses: tuple[float, ...]
    movements: tuple[float, ...]
    beyond_constants: bool
    wrong: bool


def main(arguments: Sequence[str]) -> int:
    """Print one line a workload."""
    small = [one.name for one in CATALOGUE if conformance.is_long_traced(one)]
    parser = argparse.ArgumentParser(prog="trace_deviations", description=__doc__)
    parser.add_argument("--framework", choices=engines.names(), required=True)
    parser.add_argument("--recipe", default="naive")
    parser.add_argument("--nonces", type=int, default=100)
    parser.add_argument("--workloads", nargs="+", choices=small, default=small)
    chosen = parser.parse_args(arguments)
    for name in chosen.workloads:
        workload = workload_named(name)
        cell = Cell(
            workload=name,
            workload_digest=workload.digest,
            framework=chosen.framework,
            device=Device(kind="cpu"),
            recipe=chosen.recipe,
            batch_size=workload.batch_size,
            precision="float32",
            data="generated",
        )
        engine = engines.engine_named(chosen.framework)
        engine.load(workload, cell)
        nonces = (f"{number:064x}" for number in range(1, chosen.nonces + 1))
        made = [traced(engine, workload, cell, nonce) for nonce in nonces]
        sys.stdout.write(f"{cell}, {chosen.nonces} nonces: {_summary(made)}\n")
        sys.stdout.flush()
    return 0


def traced(engine: Engine, workload: Workload, cell: Cell, nonce: str) -> Traced:
    """Train all traces under a nonce, and compare them with their recomputation."""
    traces = conformance_trace.both(engine, workload, cell, nonce)
    references = conformance_trace.recomputed(workload, nonce)
    constant = {
        key: replace(one, figures=one.figures.model_copy(update=WITHOUT_ROUNDING))
        for key, one in references.items()
    }
    pairs = [(one, references[one.optimizer].figures) for one in traces]
    long = conformance_trace.long(engine, workload, cell, nonce)
    pairs.append((long, figures(workload, "long", nonce, long.batch_size)))
    return Traced(
        tuple(max(conformance.deviations(one.losses, _losses(one, right))) for one, right in pairs),
        tuple(
            max(conformance.deviations(one.movements, right.movements, LEAST_MOVEMENT))
            for one, right in pairs
        ),
        *(
            conformance.verdict(cell, workload, traces, limits, platform.machine()).kind
            == "wrong_result"
            for limits in (constant, references)
        ),
    )


def _losses(trace: Trace, right: Figures) -> Sequence[float]:
    """The recomputed losses after the steps that a trace reads."""
    return [right.losses[step - 1] for step in trace.steps] or right.losses


def _summary(made: Sequence[Traced]) -> str:
    losses, movements = (
        " / ".join(f"{max(off):.1e}" for off in zip(*values, strict=True))
        for values in ([one.losses for one in made], [one.movements for one in made])
    )
    beyond, wrong = sum(one.beyond_constants for one in made), sum(one.wrong for one in made)
    return (
        f"losses {losses}, movements {movements} ({' / '.join((*conformance.TRACED, 'long'))}); "
        f"wrong results: {beyond} by constant limits, {wrong} by those in use"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
