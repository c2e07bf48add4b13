"""A run as JSON lines: one event per line as it happens, for programs."""

import json
from collections.abc import Sequence
from threading import Lock
from typing import Any, TextIO

from bench_protocol.payload.result import Result

from ..base.errors import ServerUnreachable
from ..base.messages import TimingEnded, WorkerEvent
from ..plan.plan import Plan, PlannedCell
from ..remote.submit import Delivery
from ..run.telemetry import Reading
from .documents import Document, result_document


class EventLines:
    """Writes a run's events to a stream; a context manager like the display it replaces."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._one_at_a_time = Lock()  # sensors report from their own thread

    def __enter__(self) -> "EventLines":
        return self

    def __exit__(self, *_: object) -> None: ...

    def planned(self, plan: Plan, left: Sequence[PlannedCell]) -> None:
        seconds = round(sum(planned.estimate_seconds for planned in left), 1)
        self._write("planned", measurements=len(plan), left=len(left), estimate_seconds=seconds)

    def skipped(self, planned: PlannedCell) -> None:
        self._write("skipped", cell=planned.cell.model_dump(mode="json"))

    def started(self, repeat: int, planned: PlannedCell) -> None:
        cell, seconds = planned.cell.model_dump(mode="json"), round(planned.estimate_seconds, 1)
        self._write("started", cell=cell, repeat=repeat, estimate_seconds=seconds)

    def heard(self, message: WorkerEvent) -> None:
        if not isinstance(message, TimingEnded):
            self._write(**message.model_dump())

    def sensed(self, reading: Reading) -> None:
        self._write("sensors", **reading)

    def finished(self, result: Result) -> None:
        self._write("finished", **result_document(result))

    def delivered(self, delivery: Delivery) -> None:
        self._write("delivered", state=delivery.state, answer=delivery.answer)

    def unreachable(self, error: ServerUnreachable) -> None:
        self._write("unreachable", detail=str(error))

    def note(self, text: str) -> None:
        """A message to the user."""
        self._write("note", text=text)

    def summary(self, document: Document) -> None:
        """The last line: the document of ``--json``."""
        self._write("summary", **document)

    def _write(self, event: str, **members: Any) -> None:
        line = json.dumps({"event": event, **members}, ensure_ascii=False)
        with self._one_at_a_time:
            self._stream.write(line + "\n")
            self._stream.flush()
