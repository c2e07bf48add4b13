"""``bench-agent conformance``: train each cell's traces under a fresh nonce and compare them with
their recomputation in float64.

Each cell runs in a fresh process. The batch size of the cell does not matter, because a trace has
its own.
"""

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.nonces import Purpose
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Trace
from bench_protocol.recompute import figures
from bench_protocol.training import conformance, long_trace
from bench_protocol.training.conformance import ConformanceVerdict, Reference
from bench_protocol.training.recomputation import trace_jobs, trace_reference

from ..base.messages import TraceAnswer, TraceTask
from ..plan.plan import Plan
from .patience import limits_for, place_of
from .worker_process import run_task, worker_command


@dataclass(frozen=True)
class CheckedCell:
    """One cell, its traces and their verdict; None where there are no traces."""

    cell: Cell
    answer: TraceAnswer
    verdict: ConformanceVerdict | None

    @property
    def failed(self) -> bool:
        return self.verdict is None or self.verdict.kind == "wrong_result"


def check(plan: Plan, logs: Path, nonce: str) -> Iterator[CheckedCell]:
    """Train the traces of each cell of the plan, one after the other, each in its own process."""
    for number, planned in enumerate(plan.cells):
        answer = run_task(
            TraceTask(workload=planned.workload, cell=planned.cell, nonce=nonce),
            logs / "conformance" / f"{number}.log",
            limits_for(place_of(planned), planned.estimate_seconds),
            worker_command(planned.python),
        )
        cell, workload = planned.cell, planned.workload
        verdict = None if answer.problem else judged(cell, workload, answer.traces, nonce)
        yield CheckedCell(cell, answer, verdict)


def judged(
    cell: Cell, workload: Workload, traces: Sequence[Trace], nonce: str
) -> ConformanceVerdict:
    """Compare all traces of a cell with their recomputation. A wrong long trace makes the verdict
    wrong; a right one does not change it."""
    machine = platform.machine()
    references = recomputed(workload, nonce)
    short: conformance.References = {name: references[name] for name in conformance.TRACED}
    verdict = conformance.verdict(cell, workload, traces, short, machine)
    if "long" not in references or verdict.kind == "wrong_result":
        return verdict
    long = long_trace.judge(cell, workload, traces, references["long"], machine)
    if long.kind != "wrong_result":
        return verdict
    return ConformanceVerdict("wrong_result", long.sentence, long.deviation)


@cache
def recomputed(workload: Workload, nonce: str) -> Mapping[Purpose, Reference]:
    """The recomputed traces of a workload. They take up to ten seconds of one core, once for all
    cells."""
    return {
        job.purpose: trace_reference(job, figures(workload, job.purpose, nonce, job.batch_size))
        for job in trace_jobs(workload, nonce)
    }


def line(checked: CheckedCell) -> str:
    cell = checked.cell
    name = f"{cell.workload:18} {cell.framework:11} {cell.device!s:6} {cell.recipe:9}"
    if checked.verdict is None:
        return f"{name} {cell.precision:8} failed: {checked.answer.problem}"
    verdict = checked.verdict
    off = "-" if verdict.deviation is None else f"{verdict.deviation:.1e}"
    limit = "" if verdict.limit is None else f"of {verdict.limit:.0e}"
    why = "" if verdict.kind == "conformant" else f": {verdict.reason}"
    return f"{name} {cell.precision:8} {off:>8} {limit:8} {verdict.kind}{why}"


def summary(checked: Sequence[CheckedCell], plan: Plan) -> str:
    """The number of cells with each verdict, and the cells that were left out."""
    kinds = [cell.verdict.kind if cell.verdict else "failed" for cell in checked]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
    left_out = [f"left out: {item.what}: {item.reason}" for item in plan.excluded]
    return "\n".join([*left_out, counts])


def document(checked: Sequence[CheckedCell], plan: Plan, nonce: str) -> dict[str, Any]:
    """Every cell with its traces and the software it ran on, as JSON."""
    return {
        "nonce": nonce,
        "pairs": [_pair(cell) for cell in checked],
        "excluded": [{"what": item.what, "reason": item.reason} for item in plan.excluded],
    }


def _pair(checked: CheckedCell) -> dict[str, Any]:
    verdict, answer = checked.verdict, checked.answer
    deviation = verdict.deviation if verdict else None
    return {
        "cell": checked.cell.model_dump(mode="json"),
        "verdict": verdict.kind if verdict else "failed",
        "reason": verdict.reason if verdict else answer.problem,
        "largest_deviation": None if deviation == inf else deviation,
        "limit": verdict.limit if verdict else None,
        **answer.model_dump(mode="json", include={"traces", "environment"}),
    }
