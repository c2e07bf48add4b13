"""``bench-agent conformance``: every pair's traces in a fresh process, held against the reference.

A pair is a cell of the plan; its batch size does not matter, a trace has its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_protocol.conformance import ConformanceVerdict, verdict
from bench_protocol.machine import Environment
from bench_protocol.matrix import Cell
from bench_protocol.result import Trace
from bench_protocol.seeded import DEFAULT_SEED

from ..base.messages import Job
from ..plan.plan import Plan
from .worker_process import run_traces


@dataclass(frozen=True)
class CheckedCell:
    """One cell's traces and what they say. ``problem``: why there are none."""

    cell: Cell
    verdict: ConformanceVerdict | None
    traces: tuple[Trace, ...]
    environment: Environment | None
    problem: str | None

    @property
    def failed(self) -> bool:
        return self.verdict is None or self.verdict.kind == "wrong_result"


def check(plan: Plan, logs: Path) -> Iterator[CheckedCell]:
    """Trace every cell of the plan, one after the other, each in a process of its own."""
    for number, planned in enumerate(plan.cells):
        job = Job(
            workload=planned.workload, cell=planned.cell, seed=DEFAULT_SEED, timing=planned.timing
        )
        answer = run_traces(job, logs / "conformance" / f"{number}.log")
        found = None if answer.problem else verdict(planned.cell, answer.traces)
        yield CheckedCell(planned.cell, found, answer.traces, answer.environment, answer.problem)


def line(one: CheckedCell) -> str:
    """One pair in one line."""
    cell = one.cell
    name = f"{cell.workload:18} {cell.framework:11} {cell.device!s:6} {cell.recipe:9}"
    if one.verdict is None:
        return f"{name} {cell.precision:8} failed: {one.problem}"
    off = "-" if one.verdict.deviation is None else f"{one.verdict.deviation:.1e}"
    why = "" if one.verdict.kind == "conformant" else f": {one.verdict.reason}"
    return f"{name} {cell.precision:8} {off:>8} {one.verdict.kind}{why}"


def summary(checked: Sequence[CheckedCell], plan: Plan) -> str:
    """How many of each, and what was left out."""
    kinds = [one.verdict.kind if one.verdict else "failed" for one in checked]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
    left_out = [f"left out: {item.what}: {item.reason}" for item in plan.excluded]
    return "\n".join([*left_out, counts])


def document(checked: Sequence[CheckedCell], plan: Plan) -> dict[str, Any]:
    """Every pair with its traces and the software it ran on."""
    return {
        "pairs": [
            {
                "cell": one.cell.model_dump(mode="json"),
                "verdict": one.verdict.kind if one.verdict else "failed",
                "reason": one.verdict.reason if one.verdict else one.problem,
                "largest_deviation": _finite(one.verdict),
                "traces": [trace.model_dump(mode="json") for trace in one.traces],
                "environment": (
                    one.environment.model_dump(mode="json") if one.environment else None
                ),
            }
            for one in checked
        ],
        "excluded": [{"what": item.what, "reason": item.reason} for item in plan.excluded],
    }


def _finite(found: ConformanceVerdict | None) -> float | None:
    if found is None or found.deviation is None or found.deviation == float("inf"):
        return None
    return found.deviation
