"""A result before its checks, with what several checks ask of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from bench_protocol.catalogue.nonces import Purpose
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Measured, Measurement, Result
from bench_protocol.training import recomputation
from bench_protocol.training.conformance import ConformanceVerdict
from bench_protocol.training.recomputation import Known, Recomputation, SeededJob

SELF_SEEDED = "self-seeded: the agent drew the nonce, so it may have been computed at any time"
PENDING = "pending: the server has not recomputed it yet"
NOT_DRAWN = (
    "not recomputed: its key had spent the day's budget of processor time, and the draw left it out"
)
NOT_SEEDED = "not all of its seeds follow from its nonce, so nothing of it is recomputed"


class Waiting(NamedTuple):
    """Why something is not compared with a recomputation."""

    verdict: Literal["self_seeded", "unverified", "not_drawn", "pending"]
    sentence: str


@dataclass(frozen=True)
class Case:
    """One result before its checks.

    ``known``: what the server has stated about its seeded jobs; ``bound``: whether a fresh
    challenge of this server binds it.
    """

    result: Result
    measured: Measurement
    workload: Workload
    known: Known = field(default_factory=dict)
    bound: bool = True

    @cached_property
    def conformance(self) -> ConformanceVerdict | None:
        """The verdict on the short traces; None until they are recomputed."""
        return recomputation.verdict(self.result, self.known, self.architecture)

    @cached_property
    def is_seeded(self) -> bool:
        return recomputation.is_seeded(self.result)

    @cached_property
    def jobs(self) -> Mapping[Purpose, SeededJob]:
        return {job.purpose: job for job in recomputation.jobs(self.result)}

    def recomputation(self, purpose: Purpose) -> Recomputation | None:
        """The recomputation of a job."""
        job = self.jobs.get(purpose)
        return None if job is None else self.known.get(job.key)

    def waits(self, *purposes: Purpose) -> Waiting:
        """Why jobs are not compared with a recomputation."""
        if self.result.challenge is None:
            return Waiting("self_seeded", SELF_SEEDED)
        if not self.bound:
            return Waiting("unverified", "no fresh challenge binds it, so it is not recomputed")
        if not isinstance(self.result.outcome, Measured):
            return Waiting("unverified", "a failed repeat is not recomputed")
        if not self.is_seeded:
            return Waiting("unverified", NOT_SEEDED)
        if self.jobs and not all(purpose in self.jobs for purpose in purposes):
            return Waiting("unverified", "its batch is too large to be recomputed")
        if not self.jobs:
            return Waiting("unverified", "the workload's definition has changed since")
        known = [self.recomputation(purpose) for purpose in purposes]
        if any(each and each.verdict == "not_drawn" for each in known):
            return Waiting("not_drawn", NOT_DRAWN)
        return Waiting("pending", PENDING)

    @property
    def architecture(self) -> str:
        return self.result.machine.cpu.architecture

    @property
    def flops(self) -> float:
        """FLOP/s of the whole timed part: all steps over all of their time."""
        blocks = self.measured.blocks
        samples = blocks.steps * self.result.cell.batch_size
        return self.workload.training_flops_per_sample * samples * 1e9 / blocks.total_ns
