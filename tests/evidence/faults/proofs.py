"""Proofs: what a result is judged by, and which of them alone keeps a fault off the boards.

A check is a proof. The check ``witness`` is several: each reading is compared as if all others were
right.
"""

import base64
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from bench_protocol.catalogue import nonces
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Failed, Result
from bench_protocol.payload.witness import Reading, Witness
from bench_protocol.recompute import Job, Training
from bench_protocol.training import recomputation, witness_verdict
from bench_protocol.training.reading import parts, parts_recomputed
from bench_protocol.training.recomputed import Figures

# Names of checks as proofs; the others keep theirs.
OF_CHECK = {
    "steps": "step count",
    "falling_loss": "test loss",
    "own_product": "own product",
    "mean_over_median": "mean over median",
}
READINGS = ("deep", "short", "first", "masks")
# In the order of the table. Checks that are not listed follow.
ORDER = (
    *(f"{kind} reading" for kind in READINGS),
    "start loss", "shuffled orders", "movements in the timing", "step count", "test loss", "pace",
    "synchronisation", "window", "own product", "mean over median",
)  # fmt: skip
SYNCHRONISATION, SHUFFLING = "synchronisation", "shuffled orders"
COST_NONCE = "5" * 64
# The package's function has the name of its module.
_figures = import_module("bench_protocol.recompute.figures")
OF_KIND = {
    "deep": lambda training, _: _figures._exact(training),
    "short": _figures._short,
    "first": _figures._short,
    "masks": _figures._dropping,
}


@dataclass(frozen=True)
class Healed:
    """A witness with the values of its recomputation in all places but one."""

    witness: Witness
    figures: Figures
    result: Result

    def but(self, number: int | None = None, **fields: Any) -> Witness:
        """All is right but a reading, or some fields."""
        workload = workload_named(self.result.cell.workload)
        done = parts(workload, self.result.cell.batch_size, self.result.seed)
        readings = [
            told
            if number is not None and done[index] == done[number]
            else self._right(index, told)
            for index, told in enumerate(self.witness.readings)
        ]  # fmt: skip
        right = {"start_loss": self.figures.start_loss, "readings": tuple(readings)}
        moved = {"movements": tuple(1.0 for _ in self.figures.readings[0].movements)}
        return self.witness.model_copy(update=right | moved | fields)

    def _right(self, index: int, told: Reading) -> Reading:
        if index < len(self.figures.readings):
            right = self.figures.readings[index]
            return told.model_copy(update={"loss": right.loss, "movements": right.movements})
        # Two readings that show masks differ: the second has the other end of their range.
        last = self.figures.readings[-1]
        apart = last.movements_high or tuple(float(index) for _ in last.movements)
        return told.model_copy(update={"loss": last.loss, "movements": apart})

    def is_wrong(self, witness: Witness) -> bool:
        cell, measured = self.result.cell, self.result.measurement
        judged = witness_verdict.judge(
            cell,
            workload_named(cell.workload),
            self.result.seed,
            witness,
            self.figures,
            settings=measured.recipe_settings if measured else {},
        )
        return judged.kind == "wrong_result"


def failing(
    result: Result, failed: Iterable[tuple[str, str]], answer: Mapping[str, Any]
) -> tuple[str, ...]:
    """The proofs each of which keeps a result off the boards.

    Args:
        failed: name and effect of each failed check.
        answer: of ``/results/{id}/recomputations``.
    """
    found = {OF_CHECK.get(name, name) for name, effect in failed if effect != "doubtful"}
    if "witness" in found:
        told = set(of_witness(result, _recomputed(answer)))
        found = (found - {"witness"}) | (told or {"witness"})
    if isinstance(result.outcome, Failed):
        found |= set(of_witness(result, _recomputed_here(result)))
        # The worker's own verdicts are checks of the server too, but for this one.
        is_timing = (result.outcome.kind, result.outcome.phase) == ("wrong_result", "timing")
        if is_timing and result.measurement is None:
            found.add(SHUFFLING)
        elif is_timing and not _miscounted(result):
            found.add(SYNCHRONISATION)
    return tuple(sorted(found, key=place))


def place(proof: str) -> tuple[int, str]:
    """For sorting."""
    return (ORDER.index(proof) if proof in ORDER else len(ORDER)), proof


def _miscounted(result: Result) -> bool:
    measured = result.measurement
    if measured is None or measured.witness is None:
        return True
    blocks = measured.blocks
    return measured.witness.step_count != 1 + blocks.warm_up_steps + blocks.steps


def of_witness(result: Result, said: Figures | None) -> Iterator[str]:
    """What of a witness is wrong on its own; ``said``: its recomputation."""
    told = result.measurement.witness if result.measurement else None
    workload = workload_named(result.cell.workload)
    done = parts(workload, result.cell.batch_size, result.seed)
    if told is None or said is None or len(done) != len(told.readings):
        return
    healed = Healed(told, said, result)
    for number, part in enumerate(done):
        name = f"{part.kind} reading"
        if healed.is_wrong(healed.but(number)) and not (number and done[number - 1] == part):
            yield name
    if healed.is_wrong(healed.but(start_loss=told.start_loss)):
        yield "start loss"
    if healed.is_wrong(healed.but(movements=told.movements)):
        yield "movements in the timing"


def _recomputed(answer: Mapping[str, Any]) -> Figures | None:
    for envelope in answer.get("recomputations", ()):
        said = recomputation.parse(base64.b64decode(envelope["payload"]))
        if said.figures is not None:
            return said.figures
    return None


def _recomputed_here(result: Result) -> Figures | None:
    """A server does not recompute a repeat that its own worker calls wrong."""
    job = recomputation.job(result)
    if job is None or job.data != "generated" or not recomputation.is_seeded(result):
        return None
    figures: Figures = _figures.figures(job.workload, job.nonce, job.batch_size)
    return figures


def read_seconds(result: Result) -> dict[str, float]:
    """Seconds of the calls of each reading in the worker."""
    told = result.measurement.witness if result.measurement else None
    workload = workload_named(result.cell.workload)
    done = parts(workload, result.cell.batch_size, result.seed)
    seconds: dict[str, float] = {}
    for part, reading in zip(done, told.readings if told else (), strict=False):
        name = f"{part.kind} reading"
        seconds[name] = seconds.get(name, 0.0) + sum(reading.durations_ns) / 1e9
    return seconds


def recomputed_seconds(workloads: Sequence[Workload]) -> dict[str, list[float]]:
    """Processor seconds of the recomputation of each reading, at the default batch sizes."""
    seconds: dict[str, list[float]] = {}
    for workload in workloads:
        job = Job(workload, workload.batch_size, nonces.seed_of(COST_NONCE, workload.digest))
        for part in parts_recomputed(parts(workload, workload.batch_size, job.seed)):
            training, began = Training(job, part, None), time.process_time()
            OF_KIND[part.kind](training, job)
            spent = time.process_time() - began
            seconds.setdefault(f"{part.kind} reading", []).append(spent)
    return seconds
