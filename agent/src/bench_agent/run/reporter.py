"""The events of a run, as its display receives them."""

from collections.abc import Sequence
from typing import Protocol

from bench_protocol.payload.result import Result

from ..base.errors import ServerUnreachable
from ..base.messages import WorkerEvent
from ..plan.plan import Plan, PlannedCell
from ..remote.submit import Delivery
from .telemetry import Reading


class Reporter(Protocol):
    def planned(self, plan: Plan, left: Sequence[PlannedCell]) -> None: ...

    def skipped(self, planned: PlannedCell) -> None: ...

    def started(self, repeat: int, planned: PlannedCell) -> None: ...

    def heard(self, message: WorkerEvent) -> None: ...

    def sensed(self, reading: Reading) -> None: ...

    def finished(self, result: Result) -> None: ...

    def delivered(self, delivery: Delivery) -> None: ...

    def unreachable(self, error: ServerUnreachable) -> None: ...

    def note(self, text: str) -> None: ...
