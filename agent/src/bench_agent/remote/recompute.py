"""Recompute what a result or a server's recomputation says of a session; needs no server.

Sessions on real data are recomputed where this machine has the data.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from bench_protocol.base.errors import DataProblem, InvalidField
from bench_protocol.catalogue import seeded
from bench_protocol.payload.result import Result
from bench_protocol.recompute import figures, generated_digest
from bench_protocol.training import recomputation
from bench_protocol.training.recomputation import Recomputation, SessionJob
from bench_protocol.training.recomputed import Figures
from bench_protocol.training.witness_verdict import LEAST_MOVEMENT

from .. import data

# Figures have ten digits; sums in another order change the last ones.
SAME_WITHIN = 1e-7


@dataclass(frozen=True)
class Compared:
    """One comparison: what was compared, its outcome, a sentence for people. ``trains``: whether it
    is of a result's session, which shows a training where it conforms."""

    what: str
    kind: Literal["conformant", "wrong_result", "unverified"]
    sentence: str
    trains: bool = False


def of_result(result: Result) -> Iterator[Compared]:
    """Recompute the readings of the timed session, and compare. Takes seconds of one core, a minute
    or more for the largest workloads."""
    origin = "self-seeded" if result.challenge is None else "seeded by its challenge"
    what, measured = f"its timed session, {origin}", result.measurement
    if measured is None or measured.witness is None:
        return
    job = recomputation.job(result)
    if job is None:
        why = "its frozen weights are not generated, or its batch is too large"
        yield Compared(what, "unverified", why)
        return
    try:
        known = _known(job)
    except DataProblem as problem:
        yield Compared(what, "unverified", str(problem))
        return
    if known.data_digest != measured.data_digest:
        why = "it was trained on other data than the workload's"
        yield Compared(what, "wrong_result", why)
        return
    found = recomputation.verdict(result, {known.key: known}, result.machine.cpu.architecture)
    if found is None:
        yield Compared(what, "unverified", "its seed does not follow from its nonce")
    else:
        yield Compared(what, found.kind, found.sentence, trains=True)


def of_recomputations(stated: Iterable[Recomputation]) -> Iterator[Compared]:
    """Recompute the figures of a server's recomputations, and compare.

    Raises:
        InvalidField: the catalogue has no such workload.
    """
    for said in stated:
        what = f"the server's recomputation of a session of {said.workload}"
        if said.figures is None:
            yield Compared(what, "unverified", "the server did not compute it: it was not drawn")
            continue
        job = recomputation.job_of(said)
        if job is None:
            raise InvalidField(f"no workload {said.workload!r} with its digest", field="workload")
        try:
            right, digest = _computed(job)
        except DataProblem as problem:
            yield Compared(what, "unverified", str(problem))
            continue
        if digest != said.data_digest:
            why = "it was computed on other data than the workload's"
            yield Compared(what, "wrong_result", why)
            continue
        off = _difference(said.figures, right)
        kind: Literal["conformant", "wrong_result"]
        kind = "conformant" if off <= SAME_WITHIN else "wrong_result"
        yield Compared(what, kind, f"its figures differ by {off:.1e} from those computed here")


@cache
def _computed(job: SessionJob) -> tuple[Figures, str]:
    """The figures of a job, and the digest of its data. A result and the server's recomputation
    have the same job."""
    workload = job.workload
    if job.data == "generated":
        return figures(workload, job.nonce, job.batch_size), generated_digest(workload.data_set)
    splits = data.load(workload.data_set, job.data)
    computed = figures(workload, job.nonce, job.batch_size, splits[0])
    return computed, seeded.data_digest(*splits)


def _known(job: SessionJob) -> Recomputation:
    right, digest = _computed(job)
    return Recomputation(
        challenge="0" * 32,
        nonce=job.nonce,
        workload=job.workload.name,
        workload_digest=job.workload.digest,
        batch_size=job.batch_size,
        seed=job.seed,
        server_origin="here",
        verdict="computed",
        figures=right,
        data=job.data,
        data_digest=digest,
    )


def _difference(one: Figures, other: Figures) -> float:
    """The largest relative difference; infinite where their lengths differ."""
    said, right = list(_values(one)), list(_values(other))
    if len(said) != len(right):
        return math.inf
    pairs = zip(said, right, strict=True)
    return max(abs(a - b) / max(abs(b), LEAST_MOVEMENT) for a, b in pairs)


def _values(figures: Figures) -> Iterator[float]:
    if figures.start_loss is not None:
        yield figures.start_loss
    for reading in figures.readings:
        yield from reading.loss_range
        for low, high in reading.movement_ranges:
            yield from (low, high)
