"""How far honest traces are from their recomputation. Limits of traces rest on this.

Wrong results are counted twice: by constant limits alone, and by those that also follow from the
effect of rounding. One BLAS thread (``OMP_NUM_THREADS=1``) is fastest.
"""

import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench_agent import engines
from bench_agent.engines.seam import Engine
from bench_agent.worker import conformance_trace
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Cell
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


def line(cell: Cell, nonces: Sequence[str]) -> str:
    """Train the traces of a cell under each nonce: the largest deviation of a loss and of a
    movement, and under how many nonces the short traces are a wrong result."""
    workload = workload_named(cell.workload)
    engine = engines.engine_named(cell.framework)
    engine.load(workload, cell)
    return _summary([traced(engine, workload, cell, nonce) for nonce in nonces])


def traced(engine: Engine, workload: Workload, cell: Cell, nonce: str) -> Traced:
    """Train all traces under a nonce, and compare them with their recomputation."""
    traces = conformance_trace.both(engine, workload, cell, nonce)
    references = conformance_trace.recomputed(workload, nonce)
    constant = {
        key: replace(one, figures=one.figures.model_copy(update=WITHOUT_ROUNDING))
        for key, one in references.items()
    }
    pairs = [(one, references[one.optimizer].figures) for one in traces]
    if conformance.is_long_traced(workload):
        long = conformance_trace.trace(engine, workload, cell, "long", cell.precision, nonce)
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
