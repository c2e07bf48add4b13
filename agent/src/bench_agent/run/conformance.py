"""``bench-agent conformance``: make the readings of each cell's session under a fresh nonce and
compare them with their recomputation in float64.

Each cell runs in a fresh process.
"""

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from bench_protocol.catalogue import nonces
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.witness import Witness
from bench_protocol.recompute import figures
from bench_protocol.training import witness_verdict
from bench_protocol.training.recomputed import Figures
from bench_protocol.training.witness_verdict import WitnessVerdict

from ..base.messages import ReadAnswer, ReadTask
from ..plan.plan import Plan
from .patience import limits_for, place_of
from .worker_process import run_task, worker_command


@dataclass(frozen=True)
class CheckedCell:
    """One cell, its readings and their verdict; None where there are none."""

    cell: Cell
    answer: ReadAnswer
    verdict: WitnessVerdict | None

    @property
    def failed(self) -> bool:
        return self.verdict is None or self.verdict.kind == "wrong_result"


def check(plan: Plan, logs: Path, nonce: str) -> Iterator[CheckedCell]:
    """Make the readings of each cell of the plan, one after the other, each in its own process."""
    for number, planned in enumerate(plan.cells):
        answer = run_task(
            ReadTask(workload=planned.workload, cell=planned.cell, nonce=nonce),
            logs / "conformance" / f"{number}.log",
            limits_for(place_of(planned), planned.estimate_seconds),
            worker_command(planned.python),
        )
        read, settings = answer.witness, answer.recipe_settings
        verdict = judged(planned.cell, planned.workload, read, nonce, settings) if read else None
        yield CheckedCell(planned.cell, answer, verdict)


def judged(
    cell: Cell, workload: Workload, witness: Witness, nonce: str, settings: Mapping[str, str]
) -> WitnessVerdict:
    """Compare the readings of a cell on generated data with their recomputation. ``settings``: of
    its recipe."""
    seed, machine = nonces.seed_of(nonce, workload.digest), platform.machine()
    right = recomputed(workload, nonce, cell.batch_size)
    return witness_verdict.judge(
        cell, workload, seed, witness, right, settings=settings, architecture=machine
    )


@cache
def recomputed(workload: Workload, nonce: str, batch_size: int) -> Figures:
    """The recomputed readings of a workload. They take about ten seconds of one core, once for all
    cells of this batch size."""
    return figures(workload, nonce, batch_size)


def line(checked: CheckedCell) -> str:
    cell = checked.cell
    name = f"{cell.workload:18} {cell.framework:11} {cell.device!s:6} {cell.recipe:9}"
    if checked.verdict is None:
        return f"{name} {cell.precision:8} failed: {checked.answer.problem}"
    verdict = checked.verdict
    off = "-" if verdict.deviation is None else f"{verdict.deviation:.1e}"
    limit = "" if verdict.limit is None else f"of {verdict.limit:.0e}"
    why = "" if verdict.kind == "conformant" else f": {verdict.sentence}"
    return f"{name} {cell.precision:8} {off:>8} {limit:8} {verdict.kind}{why}"


def summary(checked: Sequence[CheckedCell], plan: Plan) -> str:
    kinds = [cell.verdict.kind if cell.verdict else "failed" for cell in checked]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
    left_out = [f"left out: {item.what}: {item.reason}" for item in plan.excluded]
    return "\n".join([*left_out, counts])


def document(checked: Sequence[CheckedCell], plan: Plan, nonce: str) -> dict[str, Any]:
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
        "reason": verdict.sentence if verdict else answer.problem,
        "largest_deviation": None if deviation == inf else deviation,
        "limit": verdict.limit if verdict else None,
        **answer.model_dump(mode="json", include={"witness", "environment"}),
    }
