"""Recompute what a result or a server's recomputation says of its seeded jobs; needs no server.

Sessions on real data are recomputed where this machine has the data.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from bench_protocol.base.errors import DataProblem, InvalidField
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.nonces import Purpose
from bench_protocol.payload.result import Result
from bench_protocol.recompute import figures, generated_digest
from bench_protocol.signing import envelope
from bench_protocol.training import conformance, recomputation, trace_limits
from bench_protocol.training.recomputation import (
    RECOMPUTATION_PAYLOAD_TYPE,
    Recomputation,
    SeededJob,
)
from bench_protocol.training.recomputed import Figures

from .. import data

# Figures have ten digits; sums in another order change the last ones.
SAME_WITHIN = 1e-7
NAMES: dict[Purpose, str] = {
    "sgd": "the trace under SGD",
    "workload": "the trace under the workload's optimiser",
    "long": "the long trace",
    "timed": "the timed session",
}


@dataclass(frozen=True)
class Compared:
    """One comparison: what was compared, its outcome, a sentence for people. ``trains``: whether it
    is of a result's seeded traces, which show a training where they conform."""

    what: str
    kind: Literal["conformant", "wrong_result", "unverified"]
    sentence: str
    trains: bool = False


def of_result(result: Result) -> Iterator[Compared]:
    """Recompute the traces and the first steps of the timed session, and compare.

    Takes seconds of one core: a trace 0.01 to 5 s, a session up to 25 s.
    """
    origin = "self-seeded" if result.challenge is None else "seeded by its challenge"
    known = {job.key: _known(job) for job in recomputation.jobs(result) if _is_trace(job)}
    architecture = result.machine.cpu.architecture
    found = recomputation.verdict(result, known, architecture)
    if found is not None:
        yield Compared(f"its traces, {origin}", found.kind, found.reason, trains=True)
    long = recomputation.long_verdict(result, known, architecture)
    if long is not None:
        yield Compared(f"its long trace, {origin}", long.kind, long.sentence)
    yield from _session(result, origin)


def of_recomputation(path: Path) -> Iterator[Compared] | None:
    """Repeat a server's recomputation, in a file as the log shows its envelope; None if the file is
    something else.

    Raises:
        ProtocolError: it is no valid recomputation.
    """
    try:
        sealed = envelope.read(path.read_bytes())
    except (OSError, ValueError):
        return None
    if sealed.payload_type != RECOMPUTATION_PAYLOAD_TYPE:
        return None
    return of_recomputations([recomputation.parse(sealed.payload)])


def of_recomputations(stated: Iterable[Recomputation]) -> Iterator[Compared]:
    """Repeat a server's recomputations, and compare.

    Raises:
        InvalidField: the catalogue has no such workload.
    """
    for said in stated:
        what = f"the server's recomputation of {NAMES[said.purpose]} of {said.workload}"
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


def _session(result: Result, origin: str) -> Iterator[Compared]:
    what, measured = "its timed session", result.measurement
    jobs = {job.purpose: job for job in recomputation.jobs(result)}
    if measured is None or measured.witness is None:
        return
    if "timed" not in jobs:
        why = "its frozen weights are not generated, or its batch is too large"
        yield Compared(what, "unverified", why)
        return
    try:
        known = _known(jobs["timed"])
    except DataProblem as problem:
        yield Compared(what, "unverified", str(problem))
        return
    if known.data_digest != measured.data_digest:
        why = "it was trained on other data than the workload's"
        yield Compared(what, "wrong_result", why)
        return
    architecture = result.machine.cpu.architecture
    found = recomputation.session_verdict(result, {known.key: known}, architecture)
    if found is None:
        yield Compared(what, "unverified", "its seed does not follow from its nonce")
    else:
        yield Compared(f"{what}, {origin}", found.kind, found.sentence)


def _is_trace(job: SeededJob) -> bool:
    return job.purpose != "timed"


@cache
def _computed(job: SeededJob) -> tuple[Figures, str | None]:
    """The figures of a job, and the digest of its data where it is a session. A result and the
    server's recomputations of it have the same jobs.

    Raises:
        DataProblem: its real data is not on this machine.
    """
    workload = job.workload
    if job.data == "generated":
        digest = generated_digest(workload.data_set) if job.purpose == "timed" else None
        return figures(workload, job.purpose, job.nonce, job.batch_size), digest
    splits = data.load(workload.data_set, job.data)
    computed = figures(workload, job.purpose, job.nonce, job.batch_size, splits[0])
    return computed, seeded.data_digest(*splits)


def _known(job: SeededJob) -> Recomputation:
    right, digest = _computed(job)
    return Recomputation(
        challenge="0" * 32,
        nonce=job.nonce,
        workload=job.workload.name,
        workload_digest=job.workload.digest,
        purpose=job.purpose,
        batch_size=job.batch_size,
        seed=job.key.seed,
        server_origin="here",
        verdict="computed",
        figures=right,
        data=job.data,
        data_digest=digest,
    )


def _difference(one: Figures, other: Figures) -> float:
    """The largest relative difference; infinite where their lengths differ.

    The effect of rounding is itself a small difference, so 1 + effect is compared.
    """
    pairs = (
        ((one.start_loss,), (other.start_loss,)),
        (one.losses, other.losses),
        (one.high, other.high),
        (one.movements, other.movements),
        (one.movements_high, other.movements_high),
        (_factors(one.rounding), _factors(other.rounding)),
        (_factors(one.movements_rounding), _factors(other.movements_rounding)),
    )
    if any(len(said) != len(right) for said, right in pairs):
        return float("inf")
    return max(
        max(conformance.deviations(said, right, trace_limits.LEAST_MOVEMENT), default=0.0)
        for said, right in pairs
    )


def _factors(shares: Iterable[float]) -> tuple[float, ...]:
    return tuple(1 + share for share in shares)
