"""Run a fault through the real agent's worker and a real server, and note what was said of it."""

import os
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from tests.fakes.live import running_server

from bench_agent.base.errors import ServerUnreachable
from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key
from bench_agent.plan.plan import Plan
from bench_agent.plan.presets import PRESETS
from bench_agent.remote.client import Client
from bench_agent.run import journal, run
from bench_agent.run.context import RunContext
from bench_agent.run.worker_process import run_task
from bench_protocol.payload.machine import Gpu
from bench_protocol.payload.result import Failed, Result
from bench_server.db import migrate
from bench_server.db.store import open_engine

from . import proofs
from .fault import OPEN, Fault

CLAIMED_GPU = Gpu(kind="cuda", index=0, name="NVIDIA H100 80GB HBM3")
# The longest wait for the server's projector and, where it recomputes later, for that.
PROJECTED_SECONDS = 900


@dataclass(frozen=True)
class Check:
    """A check that failed."""

    name: str
    effect: str
    sentence: str


@dataclass(frozen=True)
class Outcome:
    """What became of one run. ``worker``: how the worker judged it; ``speed``: samples/s;
    ``proofs``: those that each keep it off the boards; ``seconds``: of each reading."""

    fault: Fault
    worker: str
    checks: tuple[Check, ...]
    ranked: bool
    trust: int
    reason: str | None = None
    speed: float | None = None
    proofs: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def honest(self) -> bool:
        return self.fault.name.startswith("0")

    @property
    def crashed(self) -> bool:
        """The worker crashed, and no check of what it measured failed: the fault was not planted as
        it was meant."""
        wrong = any(check.effect == "unranked" for check in self.checks)
        return self.worker.startswith("crashed") and not wrong

    @property
    def caught(self) -> bool:
        """It does not count on any board."""
        return not self.ranked and not self.crashed

    @property
    def right(self) -> bool:
        """An honest run is ranked, a fault is not."""
        return self.ranked if self.honest else self.caught


class Quiet:
    """Shows nothing of a run."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: None


class Runner:
    """Runs faults against one server. Each thread has an agent's folder, and so a key."""

    def __init__(self, server: str, folder: Path) -> None:
        self._server, self._folder = server, folder
        self._here = threading.local()
        self._sent: dict[str, Fault] = {}
        measured = run.measured

        def changed(*arguments: Any) -> Result:
            result = measured(*arguments)
            return _as_sent(self._sent[result.run_id], result)

        run.measured = changed

    def __call__(self, fault: Fault) -> Outcome:
        home, run_id = self._home(), secrets.token_hex(16)
        self._sent[run_id] = fault
        plan = Plan(PRESETS["smoke"], (fault.setup.planned(),), (), 1)
        command = [sys.executable, "-m", "tests.evidence.faults.worker", fault.name]
        if not fault.name.startswith("0"):  # a control runs as its user's agent does
            command = ["env", "OMP_NUM_THREADS=1", "nice", *command]
        context = RunContext(
            home,
            Quiet(),
            self._server,
            gate=OPEN,
            run_job=lambda job, log, limits, _, listener: run_task(
                job, log, limits, command, listener
            ),
        )
        summary = run.run_plan(journal.begin(home, run_id, "0" * 64, plan), context)
        if not summary.addresses:
            raise ServerUnreachable(f"the server has no result of {fault.name}: {summary}")
        outcome = self._outcome(fault, summary.results[0], summary.addresses[0])
        if outcome.crashed or (outcome.honest and not outcome.ranked):
            log = next((home.logs / run_id).iterdir()).read_text(errors="replace")
            said = "".join(f"{check.name}: {check.sentence}\n" for check in outcome.checks)
            print(f"{fault.name}:\n{said}{log[-2000:]}", file=sys.stderr, flush=True)
        return outcome

    def _home(self) -> Home:
        """The agent's folder of this thread; its owner has agreed to the server's licence."""
        if not hasattr(self._here, "home"):
            home = Home(self._folder / f"agent-{threading.get_ident()}")
            self._here.home = agreed(self._server, home)
        home = self._here.home
        return home if isinstance(home, Home) else Home(home)

    def _outcome(self, fault: Fault, result: Result, address: str) -> Outcome:
        identity = address.rpartition("/")[2]
        row = row_of(self._server, identity)
        failed = tuple(
            Check(verdict["check"], verdict["effect"], verdict["sentence"])
            for verdict in row["verdicts"]
            if not verdict["passed"]
        )
        path = f"{self._server}/api/v1/results/{identity}/recomputations"
        effects = [(check.name, check.effect) for check in failed]
        return Outcome(
            fault=fault,
            proofs=proofs.failing(result, effects, httpx.get(path, timeout=60).json()),
            seconds=proofs.read_seconds(result),
            worker=_worker_said(result),
            checks=failed,
            ranked=bool(row["ranked"]),
            trust=row["trust_level"],
            reason=row["unranked_reason"],
            speed=row["samples_per_second"],
        )


def agreed(server: str, home: Home) -> Home:
    """A new agent's folder; its owner agrees to the server's licence."""
    client = Client(server, load_or_create_key(home), home)
    if client.checkpoints:
        client.checkpoints.meet()
        client.checkpoints.agree("CC-BY-4.0")
    client.close()
    return home


def row_of(server: str, identity: str) -> dict[str, Any]:
    """A result of the API once it is projected and recomputed."""
    path = f"{server}/api/v1/results/{identity}"
    ends = time.monotonic() + PROJECTED_SECONDS  # "wait" ends at once on what is projected
    while time.monotonic() < ends:
        row: dict[str, Any] = httpx.get(path, params={"wait": 5}, timeout=60).json()
        kinds = {verdict["figures"].get("verdict") for verdict in row.get("verdicts") or ()}
        if row["status"] != "pending" and "pending" not in kinds:
            return row
        time.sleep(1)
    raise ServerUnreachable(f"{identity} is still pending, or not recomputed")


def _as_sent(fault: Fault, result: Result) -> Result:
    if fault.setup.device != "cpu":
        machine = result.machine.model_copy(update={"gpus": (CLAIMED_GPU,)})
        result = result.model_copy(update={"machine": machine})
    return fault.sent(result) if fault.sent else result


def _worker_said(result: Result) -> str:
    if isinstance(result.outcome, Failed):
        kind = f"{result.outcome.kind} ({result.outcome.phase})"
        # The name of its module is left out: it is too long for a column.
        raised = (result.outcome.exception_class or "").rpartition(".")[2]
        return f"{kind}: {raised}" if raised else kind
    return "measured"


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A server on loopback with an empty database, which recomputes; its address."""
    database = f"sqlite:///{folder / 'server.db'}"
    engine = open_engine(database)
    migrate.migrate(engine)
    engine.dispose()
    # All that the few keys send is recomputed.
    settings = {"BENCH_SERVER_RECOMPUTE": "yes", "BENCH_SERVER_RECOMPUTE_SECONDS": "86400"}
    with running_server(database, folder, **settings) as server:
        yield server


@contextmanager
def runner() -> Iterator[Runner]:
    """A server on loopback, and an agent beside it, until the end."""
    with (
        tempfile.TemporaryDirectory(prefix="trainmark-faults-") as name,
        served(Path(name)) as server,
    ):
        yield Runner(server, Path(name))


def run_all(
    faults: Sequence[Fault], workers: int, note: Callable[[Outcome], None]
) -> list[Outcome]:
    """Run faults, ``workers`` at a time, and report each as soon as it ends.

    Returns:
        The outcomes in the faults' order.
    """
    for rate in ("ADDRESS", "ENROLL"):
        os.environ.setdefault(f"BENCH_SERVER_{rate}_RATE", "off")
    with runner() as one, ThreadPoolExecutor(workers) as pool:
        running = {pool.submit(one, fault): fault for fault in faults}
        outcomes = {}
        try:
            for done in as_completed(running):
                outcomes[running[done].name] = done.result()
                note(done.result())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return [outcomes[fault.name] for fault in faults]
