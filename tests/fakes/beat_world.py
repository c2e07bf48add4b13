"""A simulated machine, worker and network for beats, beside a real server: one clock for all.

The worker moves the clock. Time stands still while a beat is on its way.
"""

import secrets
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send
from tests.agent.test_resume import OPEN, Quiet
from tests.fakes import results
from tests.fakes.authority import AUTHORITY
from tests.fakes.loopback import NO_LIMITS, Listening
from tests.fakes.projected import Projected

from bench_agent.base.home import Home
from bench_agent.base.messages import (
    Answer,
    BlockDone,
    FoundDevice,
    Job,
    PhaseBegan,
    Probe,
    TimingEnded,
)
from bench_agent.cli.setup import open_client
from bench_agent.cli.submit import ask_consent
from bench_agent.plan.plan import Selection, make_plan
from bench_agent.plan.presets import PRESETS
from bench_agent.remote.beats import BeatPost
from bench_agent.run import beats as agent_beats
from bench_agent.run import journal
from bench_agent.run import run as agent_run
from bench_agent.run.sign import RunClock
from bench_agent.run.worker_process import Limits, Listener
from bench_protocol.payload.evidence import Beat
from bench_protocol.payload.result import Blocks, Measured, Result
from bench_server.app import create_app
from bench_server.db import migrate
from bench_server.db.store import Store
from bench_server.log import writer

BEGAN = datetime(2026, 11, 21, 4, tzinfo=UTC)
BLOCK_NS = 200_000_000
WAIT_SECONDS = 20


async def nothing(send: Send) -> bool:
    return False


@dataclass
class World:
    """The time, and what the network does to a beat.

    ``speed``: of the agent's clock. ``answered``: a beat of the agent is settled. ``network``:
    handles a beat in place of the server; True where it did.
    """

    now_ns: int = 0
    speed: float = 1.0
    network: Callable[[Send], Awaitable[bool]] = nothing
    answered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def pass_ns(self, duration_ns: int) -> None:
        self.now_ns += duration_ns

    def wall(self) -> datetime:
        return BEGAN + timedelta(microseconds=self.now_ns / 1e3)

    def agents_ns(self) -> int:
        return round(self.now_ns * self.speed)

    def settle(self) -> None:
        assert self.answered.acquire(timeout=WAIT_SECONDS)


class Network:
    """Middleware: beats pass through the network of the server's world."""

    def __init__(self, app: FastAPI, server: "LoopbackServer") -> None:
        self._app, self._server = app, server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path") != "/api/v1/beats":
            await Projected(self._app)(scope, receive, send)
            return
        if not await self._server.world.network(send):
            await self._app(scope, receive, send)


class LoopbackServer:
    """A server in a world."""

    def __init__(self, database: str) -> None:
        self.world = World()
        self.store = Store(database)
        migrate.migrate(self.store.engine)
        with self.store.writing() as session:
            writer.begin(session, AUTHORITY)
        app = create_app(
            NO_LIMITS, self.store, lambda: self.world.wall(), AUTHORITY, fresh_seconds=0
        )
        self._listening = Listening(Network(app, self))
        self.address = self._listening.address
        self.start, self.stop = self._listening.start, self._listening.stop

    def beats_verdict(self, result: Result) -> dict[str, Any]:
        return self.verdict(result, "beats")

    def verdict(self, result: Result, check: str) -> dict[str, Any]:
        page = httpx.get(f"{self.address}/api/v1/results").json()
        (row,) = (one for one in page["results"] if one["run_id"] == result.run_id)
        (verdict,) = (one for one in row["verdicts"] if one["check"] == check)
        return dict(verdict)


@dataclass
class Worker:
    """Stands in for a worker: says what one says, and lets time pass.

    ``late_ns``: the parent process receives so late that timing began.
    """

    world: World
    blocks: int = 10
    each: Callable[[int], None] = lambda number: None
    ended: Callable[[], None] = lambda: None
    waits: bool = True
    late_ns: int = 0

    def __call__(self, job: Job, log: Path, limits: Limits, listener: Listener) -> Answer:
        listener(PhaseBegan(phase="warm_up"))
        self.world.pass_ns(BLOCK_NS + self.late_ns)
        listener(PhaseBegan(phase="timing"))
        self._settle()
        durations = self.time_blocks(listener)
        blocks = Blocks(
            steps_per_block=10,
            durations_ns=tuple(durations),
            stop_reason="budget",
            warm_up_steps=20,
            warm_up_ns=BLOCK_NS,
        )
        measured = results.make_measurement(job.cell, blocks=blocks)
        measured = results.with_witness(job.cell, measured)
        assert measured.witness is not None
        listener(TimingEnded(last_loss=measured.last_loss, losses=measured.witness.losses))
        self.ended()
        self._settle()
        self.world.pass_ns(BLOCK_NS)
        return Answer(outcome=Measured(measurement=measured), environment=None)

    def time_blocks(self, listener: Listener) -> list[int]:
        durations = []
        for number in range(self.blocks):
            self.each(number)
            self.world.pass_ns(BLOCK_NS)
            unseen_ns = 0 if durations else self.late_ns
            durations.append(round((BLOCK_NS + unseen_ns) * self.world.speed))
            share = (number + 1) / self.blocks
            listener(BlockDone(duration_ns=durations[-1], steps=10, share_done=share))
        return durations

    def _settle(self) -> None:
        if self.waits:
            self.world.settle()


def run(
    world: World, server: LoopbackServer | None, home: Path, worker: Worker, monkeypatch: Any
) -> Result:
    """One repeat of an agent, posted to the server."""

    class Settling(BeatPost):
        def read(self, answer: Any, posted: Beat, answered_ns: int) -> Beat:
            try:
                return super().read(answer, posted, answered_ns)
            finally:
                world.answered.release()

    posting = partial(agent_beats.Beats, open_post=Settling)
    monkeypatch.setattr(agent_run, "Beats", posting)
    here = {"mlx": Probe(devices=(FoundDevice(kind="cpu", index=0, name="CPU"),), environment=None)}
    selection = Selection(frameworks=("mlx",), workloads=("mnist-cnn",), recipes=("tuned",))
    plan = make_plan(PRESETS["smoke"], selection, here)
    if server is not None:
        client = open_client(server.address, Home(home))
        ask_consent(client, None, yes=True)
        client.close()
    note = journal.begin(Home(home), secrets.token_hex(16), secrets.token_hex(32), plan)
    summary = agent_run.run_plan(
        note,
        Home(home),
        server.address if server else None,
        Quiet(),
        run_job=worker,
        gate=OPEN,
        new_clock=lambda: started(world),
    )
    (result,) = summary.results
    return result


def started(world: World) -> RunClock:
    """The run's clocks: the machine's wall clock is set by the network, its monotonic clock may
    run slow."""
    return RunClock(wall=world.wall, monotonic_ns=world.agents_ns)
