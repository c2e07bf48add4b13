"""The outcome of a run: its results, their counts and addresses."""

from dataclasses import dataclass, field
from functools import cached_property

from bench_protocol.payload.result import Measured, Result

from ..remote.outbox import Entry
from ..remote.rank import MachineRank


@dataclass
class RunSummary:
    """The outcome of a run: its results, in the outbox, their counts and addresses. It reads
    results when asked, so that a run's memory does not grow with its repeats."""

    entries: list[Entry] = field(default_factory=list)
    sent: int = 0
    sent_earlier: int = 0  # of those sent, the results of earlier runs
    addresses: list[str] = field(default_factory=list)  # of the sent results
    rank: MachineRank | None = None  # of this machine, once boards count the newest result
    refused: int = 0
    waiting: int = 0
    server_unreachable: bool = False
    interrupted: bool = False

    @cached_property
    def results(self) -> list[Result]:
        """The results, read from the outbox. Ask when the run has ended: they are read once."""
        return [entry.result() for entry in self.entries]

    @property
    def failed(self) -> int:
        return sum(not isinstance(result.outcome, Measured) for result in self.results)
