"""A result before its checks, with what several checks ask of it."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Measured, Measurement, Result
from bench_protocol.training import recomputation
from bench_protocol.training.recomputation import Known, Recomputation, SessionJob

SELF_SEEDED = "self-seeded: the agent drew the nonce, so it may have been computed at any time"
PENDING = "pending: the server has not recomputed it yet"
NOT_DRAWN = (
    "not recomputed: its key had spent the day's budget of processor time, and the draw left it out"
)
NOT_SEEDED = "its seed does not follow from its nonce, so nothing of it is recomputed"


class Waiting(NamedTuple):
    """Why something is not compared with a recomputation."""

    verdict: Literal["self_seeded", "unverified", "not_drawn", "pending"]
    sentence: str


@dataclass(frozen=True)
class Case:
    """``known``: recomputations; ``bound``: whether a fresh challenge of this server binds it."""

    result: Result
    measured: Measurement
    workload: Workload
    known: Known = field(default_factory=dict)
    bound: bool = True

    @cached_property
    def is_seeded(self) -> bool:
        return recomputation.is_seeded(self.result)

    @cached_property
    def job(self) -> SessionJob | None:
        """The job that the server recomputes; None if it recomputes none."""
        return recomputation.job(self.result)

    @property
    def recomputed(self) -> Recomputation | None:
        """The server's recomputation of its session."""
        return None if self.job is None else self.known.get(self.job.key)

    @property
    def waiting(self) -> Waiting:
        """Why its session is not compared with a recomputation."""
        if self.result.challenge is None:
            return Waiting("self_seeded", SELF_SEEDED)
        if not self.bound:
            return Waiting("unverified", "no fresh challenge binds it, so it is not recomputed")
        if not isinstance(self.result.outcome, Measured):
            return Waiting("unverified", "a failed repeat is not recomputed")
        if not self.is_seeded:
            return Waiting("unverified", NOT_SEEDED)
        if self.job is None:
            why = "its batch is too large, or the workload's definition has changed since"
            return Waiting("unverified", why)
        if self.recomputed and self.recomputed.verdict == "not_drawn":
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
