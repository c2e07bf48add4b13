"""Run the same selection on every machine of a Dask cluster, each exactly once.

A machine is known by its key. At most one run of a host is in progress, and a run holds the
worker's resource :data:`RESOURCE`, so that two fleets never measure on one worker at once. If a
worker is lost, its machine waits until a worker with the same key comes, and the run is resumed
there; no other machine gets its repeats.
"""

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Literal

from bench_protocol.base.format import plural

from ..base.errors import UsageProblem
from .worker_task import TOPIC, Ended, Member, describe, interrupt, measure

RESOURCE = "trainmark"
# Tasks' keys begin with these.
DESCRIBE, MEASURE = f"{RESOURCE}-describe", f"{RESOURCE}-measure"
POLL_SECONDS = 0.25
SCHEDULER_LOST = (
    "the scheduler is lost. What was measured is in the machines' outboxes; start scheduler and "
    "workers again, then the fleet"
)
State = Literal["waiting", "running", "lost", "done", "failed"]


@dataclass(frozen=True)
class Row:
    """One machine: where its worker is, and how far its run is. ``key_id`` is empty for a worker
    that cannot be used."""

    key_id: str
    name: str
    host: str
    address: str
    hardware: str
    state: State = "waiting"
    planned: int = 0
    finished: int = 0
    failed: int = 0
    sent: int = 0
    resumed: int = 0
    words: str = ""
    lost_at: float = 0.0

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "failed")


class Fleet:
    """Distributes one run.

    Args:
        client: a ``distributed.Client``.
        arguments: of ``bench-agent run``, without those of its output.
        machines: begin when this many workers are there.
        patience_seconds: how long to wait for workers, and for a lost one to return.
        show: is given the rows whenever the fleet looks at them.
    """

    def __init__(
        self,
        client: Any,
        arguments: Sequence[str],
        machines: int,
        patience_seconds: float,
        show: Callable[[Sequence[Row]], None],
    ) -> None:
        self.id = secrets.token_hex(16)
        self._client = client
        self._arguments = tuple(arguments)
        self._machines = machines
        self._patience_seconds = patience_seconds
        self._show = show
        self._rows: dict[str, Row] = {}
        self._lock = Lock()  # events come in Dask's thread
        self._described: dict[str, Any] = {}  # futures by worker address
        self._runs: dict[str, Any] = {}  # futures by key

    def run(self) -> list[Row]:
        """Measure on every machine.

        Returns:
            The machines, each ``done`` or ``failed``.

        Raises:
            UsageProblem: too few workers came, or the scheduler is lost.
        """
        self._client.subscribe_topic(TOPIC, self._heard)
        try:
            rows = self._until_over()
            self._client.unsubscribe_topic(TOPIC)
            return rows
        except UsageProblem:
            raise
        except Exception as error:  # of a client that closes; Dask has several
            if self._client.status == "running":
                raise
            raise UsageProblem(SCHEDULER_LOST) from error

    def _until_over(self) -> list[Row]:
        started, began = time.monotonic(), False
        while self._client.status != "closed":
            workers = self._workers()
            self._meet(workers)
            self._follow(workers)
            machines = [row for row in self.rows if row.key_id]
            began = began or len(machines) >= self._machines
            if began:
                self._start()
            elif time.monotonic() - started > self._patience_seconds:
                raise UsageProblem(self._too_few(len(machines)))
            self._show(self.rows)
            if began and all(row.is_over for row in self.rows):
                return self.rows
            time.sleep(POLL_SECONDS)
        raise UsageProblem(SCHEDULER_LOST)

    def _too_few(self, count: int) -> str:
        reasons = [f"worker {row.name} {row.words}" for row in self.rows if not row.key_id]
        tasks = self._client.processing()
        for address, facts in self._client.scheduler_info(n_workers=-1)["workers"].items():
            name, asked = facts.get("name") or address, self._described.get(address)
            if asked is None:
                reasons.append(f"worker {name} has no resource {RESOURCE}")
            elif not asked.done():
                others = any(key.startswith(MEASURE) for key in map(str, tasks.get(address, ())))
                what = "measures for another fleet" if others else "has not answered"
                reasons.append(f"worker {name} {what}")
        came = f"{count} of {plural(self._machines, 'machine')} came"
        return (
            f"{'; '.join([came, *reasons])}; start each "
            f"with: dask worker ADDRESS --nthreads 1 --no-nanny --resources {RESOURCE}=1"
        )

    def stop(self) -> None:
        """Ask every machine to stop after its present repeat. Its journal stays, so that
        ``bench-agent run --resume`` there continues."""
        running = [row.address for row in self.rows if row.state == "running"]
        if running:
            self._client.run(interrupt, workers=running, on_error="ignore")

    @property
    def rows(self) -> list[Row]:
        """The machines in the order in which they came."""
        with self._lock:
            return list(self._rows.values())

    def _workers(self) -> dict[str, Any]:
        """Workers with the resource, by address."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        return {
            address: facts
            for address, facts in workers.items()
            if facts.get("resources", {}).get(RESOURCE, 0) >= 1
        }

    def _meet(self, workers: dict[str, Any]) -> None:
        """Ask new workers which machine they are."""
        for address in workers.keys() - self._described.keys():
            self._described[address] = self._submit(DESCRIBE, address, describe)
        for address in self._described.keys() - workers.keys():
            self._described.pop(address).cancel()
            with self._lock:
                self._rows.pop(address, None)  # of a worker that could not be used
        for address, future in self._described.items():
            if any(row.address == address for row in self.rows):
                continue
            if future.status == "error":
                self._refuse(address, workers[address], future.exception())
            if future.status != "finished":
                continue
            member, facts = future.result(), workers[address]
            known = self._rows.get(member.key_id)
            if known is not None and known.address in workers:
                self._change(
                    member.key_id,
                    words=f"{address} has the same key and is left out: give it another BENCH_HOME",
                )
            elif known is not None:
                state = known.state if known.is_over else "waiting"
                self._change(
                    member.key_id, address=address, host=facts["host"], state=state, words=""
                )
            else:
                row = _row(address, facts, member)
                with self._lock:
                    self._rows[row.key_id] = row

    def _refuse(self, address: str, facts: dict[str, Any], error: Exception) -> None:
        """Show a worker that cannot be used, and why. It has no key, so that its row has its
        address."""
        words = f"cannot be used: {_first_line(error)}"
        row = replace(_row(address, facts), state="failed", words=words)
        with self._lock:
            self._rows[address] = row

    def _follow(self, workers: dict[str, Any]) -> None:
        """Note which runs ended and which workers are lost."""
        now = time.monotonic()
        for row in self.rows:
            run = self._runs.get(row.key_id)
            if not row.is_over and row.state != "lost" and row.address not in workers:
                if run is not None:
                    self._runs.pop(row.key_id).cancel()
                self._change(row.key_id, state="lost", lost_at=now, words="waits for its worker")
            elif row.state == "lost" and now - row.lost_at > self._patience_seconds:
                self._change(row.key_id, state="failed", words="its worker did not return")
            elif row.state == "running" and run is not None and run.done():
                del self._runs[row.key_id]
                self._end(row, run)

    def _end(self, row: Row, run: Any) -> None:
        if run.status == "finished":
            ended: Ended = run.result()
            self._change(
                row.key_id,
                state="done" if ended.code == 0 else "failed",
                planned=ended.measured + ended.failed or row.planned,
                finished=ended.measured + ended.failed,
                failed=ended.failed,
                words=ended.words,
            )
        elif run.status == "error":
            self._change(row.key_id, state="failed", words=_first_line(run.exception()))
        else:  # the scheduler forgot it together with its worker
            now = time.monotonic()
            self._change(row.key_id, state="lost", lost_at=now, address="", words="")

    def _start(self) -> None:
        """Start the run of each waiting machine whose host is free."""
        for row in self.rows:
            busy = {other.host for other in self.rows if other.state == "running"}
            if row.state == "waiting" and row.host not in busy:
                self._runs[row.key_id] = self._submit(
                    MEASURE, row.address, measure, self.id, self._arguments
                )
                resumed = row.resumed + bool(row.planned)
                self._change(row.key_id, state="running", resumed=resumed)

    def _submit(self, kind: str, address: str, task: Callable[..., Any], *arguments: Any) -> Any:
        return self._client.submit(
            task,
            *arguments,
            key=f"{kind}-{secrets.token_hex(8)}",
            workers=[address],
            allow_other_workers=False,
            resources={RESOURCE: 1},
            retries=0,
            pure=False,
        )

    def _heard(self, logged: tuple[Any, dict[str, Any]]) -> None:
        """Count an event of a run; called in Dask's thread."""
        _stamp, event = logged
        row = self._rows.get(event["key_id"])
        if row is None or row.is_over:
            return
        if event["event"] == "planned":
            done = event["measurements"] - event["left"]
            self._change(row.key_id, planned=event["measurements"], finished=done)
        elif event["event"] == "finished":
            failed = row.failed + (event["status"] == "failed")
            self._change(row.key_id, finished=row.finished + 1, failed=failed)
        elif event["event"] == "delivered":
            self._change(row.key_id, sent=row.sent + (event["state"] == "sent"))
        elif event["event"] == "started":
            cell = event["cell"]
            words = f"{cell['workload']['name']}" if isinstance(cell["workload"], dict) else ""
            self._change(row.key_id, words=words or str(cell["workload"]))
        elif event["event"] == "note":
            self._change(row.key_id, words=event["text"])
        elif event["event"] == "unreachable":
            self._change(row.key_id, words=event["detail"])

    def _change(self, key: str, **values: Any) -> None:
        with self._lock:
            self._rows[key] = replace(self._rows[key], **values)


def _row(address: str, facts: dict[str, Any], member: Member | None = None) -> Row:
    """The row of a worker; ``facts``: what the scheduler says of it."""
    key_id, hardware = (member.key_id, member.hardware) if member else ("", "")
    return Row(key_id, str(facts.get("name") or address), facts["host"], address, hardware)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
