"""The interface of a source of energy readings."""

from collections.abc import Mapping
from typing import Protocol

from bench_protocol.payload.readings import EnergySource

# Counters by scope, in millijoules since some earlier time.
Counters = Mapping[str, int]


class MeterProblem(Exception):
    """There is no energy reading; the message says why."""


class Meter(Protocol):
    """Counters of one source. They only rise: a meter corrects for a counter that wraps to zero."""

    source: EnergySource
    scope: str
    """Which of the counters is the device's own."""

    def read(self) -> Counters:
        """All counters now. Takes less than a few milliseconds.

        Raises:
            MeterProblem: the source stopped answering.
        """

    def close(self) -> None: ...
