"""A result before its checks, with what several checks ask of it."""

from dataclasses import dataclass
from functools import cached_property

from bench_protocol import conformance
from bench_protocol.result import FIRST_VERSION, Measurement, Result
from bench_protocol.workloads import Workload


@dataclass(frozen=True)
class Case:
    """One result before its checks."""

    result: Result
    measured: Measurement
    workload: Workload

    @cached_property
    def conformance(self) -> conformance.ConformanceVerdict:
        """The verdict on the short traces."""
        return conformance.verdict(
            self.result.cell, self.measured.traces, architecture=self.architecture
        )

    @property
    def architecture(self) -> str:
        """Of the machine's processor."""
        return self.result.machine.cpu.architecture

    @property
    def is_first_version(self) -> bool:
        """Whether the payload is of version 1, which has neither witness nor window."""
        return self.result.schema_version == FIRST_VERSION

    @property
    def flops(self) -> float:
        """FLOP/s of the whole timed part: all steps over all of their time."""
        blocks = self.measured.blocks
        samples = blocks.steps * self.result.cell.batch_size
        return self.workload.training_flops_per_sample * samples * 1e9 / blocks.total_ns
