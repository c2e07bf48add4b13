"""Beats end to end: an agent's run, a real server on loopback, one simulated clock for both.

The worker is simulated, so what is measured follows from the test alone. The network's faults are
real.
"""

import asyncio
import base64
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Send
from tests.fakes.authority import AUTHORITY
from tests.fakes.beat_world import BEGAN, BLOCK_NS, LoopbackServer, Worker, World, nothing, run

from bench_agent.base.home import Home
from bench_agent.base.messages import Answer, BlockDone
from bench_agent.remote import verify
from bench_agent.remote.connection import trusted
from bench_agent.remote.outbox import Outbox
from bench_agent.run import beats as agent_beats
from bench_agent.run.worker_process import Listener
from bench_protocol.base.errors import BadSignature
from bench_protocol.payload import beats
from bench_protocol.payload.result import Measured, Result
from bench_protocol.signing import keys


@pytest.fixture(scope="module")
def loopback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackServer]:
    folder = tmp_path_factory.mktemp("loopback")
    made = LoopbackServer(f"sqlite:///{folder / 'server.db'}")
    yield made
    made.stop()
    made.store.close()


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def server(world: World, loopback: LoopbackServer) -> LoopbackServer:
    """Begins in the test's world."""
    loopback.world = world
    return loopback


Go = Callable[[Worker], Result]


@pytest.fixture
def go(world: World, server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Go:
    return lambda worker: run(world, server, tmp_path / "agent", worker, monkeypatch)


# -- the honest run, and clocks -------------------------------------------------------------------


def test_a_run_is_bounded_by_the_servers_clock(
    world: World, server: LoopbackServer, go: Go
) -> None:
    result = go(Worker(world))
    assert [beat.moment for beat in result.beats] == ["begin", "end"]
    beats.require_signed(result, AUTHORITY.challenge.public_key())
    verdict = server.beats_verdict(result)
    assert (verdict["passed"], verdict["figures"]["verdict"]) == (True, "bounded")
    assert verdict["figures"]["server_ns"] == verdict["figures"]["blocks_ns"] == 10 * BLOCK_NS


def test_verify_checks_the_signed_times_offline(
    world: World, server: LoopbackServer, go: Go
) -> None:
    result = go(Worker(world))
    page = httpx.get(f"{server.address}/api/v1/results").json()
    (identity,) = (one["id"] for one in page["results"] if one["run_id"] == result.run_id)
    bundle = verify.fetch_bundle(identity, lambda path: httpx.get(server.address + path).json())
    timing = verify.verify(bundle).timing
    assert timing is not None
    assert timing.startswith("its timing was bounded by the server's clock")
    other = base64.b64encode(keys.spki(AUTHORITY.log.public_key())).decode()
    with pytest.raises(BadSignature, match="beat 1"):
        verify.verify(bundle | {"log": bundle["log"] | {"challenge_key": other}})


def test_a_long_part_posts_every_ten_seconds_after_a_minute(
    world: World, server: LoopbackServer, go: Go
) -> None:
    def each(number: int) -> None:
        if number in (300, 350, 400):
            world.settle()  # of the beat after the block before

    result = go(Worker(world, 410, each))
    assert [beat.blocks for beat in result.beats] == [0, 300, 350, 400, 410]
    assert server.beats_verdict(result)["figures"]["verdict"] == "bounded"


def test_certificates_are_read_once_however_many_repeats(
    world: World, server: LoopbackServer, go: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reading takes memory of the C library, which a closed connection holds for long."""
    read: list[str | None] = []
    load = ssl.SSLContext.load_verify_locations

    def counted(context: ssl.SSLContext, cafile: str | None = None, *rest: Any) -> None:
        read.append(cafile)
        load(context, cafile, *rest)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", counted)
    trusted.cache_clear()
    for _ in range(3):
        assert len(go(Worker(world)).beats) == 2
    assert len(read) == 1


def test_a_clock_that_is_five_per_cent_slow_is_detected(
    world: World, server: LoopbackServer, go: Go
) -> None:
    world.speed = 0.95
    verdict = server.beats_verdict(go(Worker(world)))
    assert (verdict["passed"], verdict["effect"]) == (False, "stale")
    assert "by its own clock" in verdict["sentence"]


def test_a_parent_that_hears_late_of_the_beginning_costs_no_rank(
    world: World, server: LoopbackServer, go: Go
) -> None:
    """Two seconds of 2.3 are in the window, and between the beats."""
    result = go(Worker(world, late_ns=300_000_000))
    window, beats_said = (server.verdict(result, check) for check in ("window", "beats"))
    assert (window["figures"]["verdict"], window["effect"]) == ("shorter", "doubtful")
    assert (beats_said["figures"]["verdict"], beats_said["passed"]) == ("unbounded", True)


def test_a_machine_that_slept_is_detected(world: World, server: LoopbackServer, go: Go) -> None:
    """The clock of the agent stands still, the server's does not."""
    slept_ns = 0

    def sleep(number: int) -> None:
        nonlocal slept_ns
        if number == 5:
            slept_ns = BLOCK_NS
            world.pass_ns(slept_ns)

    world.agents_ns = lambda: world.now_ns - slept_ns  # type: ignore[method-assign]
    verdict = server.beats_verdict(go(Worker(world, each=sleep)))
    assert (verdict["passed"], verdict["effect"]) == (False, "stale")


def test_a_worker_suspended_between_blocks_is_detected(
    world: World, server: LoopbackServer, go: Go
) -> None:
    def suspended(number: int) -> None:
        if number == 5:
            world.pass_ns(3 * BLOCK_NS)

    verdict = server.beats_verdict(go(Worker(world, each=suspended)))
    assert (verdict["passed"], verdict["effect"]) == (False, "stale")
    assert "its blocks take 2.000 s, and 2.600 s passed" in verdict["sentence"]


SUSPENDS_ITSELF = """
import os, signal, time
for number in range(4):
    began = time.perf_counter_ns()
    time.sleep(0.02)
    if number == 2:
        print("suspended", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
    print(time.perf_counter_ns() - began, flush=True)
"""


class RealTime(World):
    """The machine's clock for both."""

    def __init__(self) -> None:
        super().__init__()
        self._zero_ns = time.monotonic_ns()

    def agents_ns(self) -> int:
        return time.monotonic_ns() - self._zero_ns

    def wall(self) -> datetime:
        return BEGAN + timedelta(microseconds=self.agents_ns() / 1e3)


class Suspended(Worker):
    """A real process that stops itself in a block, and is continued."""

    def time_blocks(self, listener: Listener) -> list[int]:
        durations = []
        command = [sys.executable, "-c", SUSPENDS_ITSELF]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or ():
                if line == "suspended\n":
                    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
                    time.sleep(0.3)
                    process.send_signal(signal.SIGCONT)
                else:
                    durations.append(int(line))
                    listener(BlockDone(duration_ns=durations[-1], steps=10, share_done=0.5))
        return durations


@pytest.mark.parametrize("world", [RealTime()])
def test_a_worker_suspended_in_a_block_is_slow_and_agrees(
    world: World, server: LoopbackServer, go: Go
) -> None:
    result = go(Suspended(world))
    assert result.measurement is not None
    assert result.measurement.blocks.durations_ns[2] >= 300_000_000
    assert server.beats_verdict(result)["passed"]


def test_the_worker_may_say_what_it_likes_after_the_last_beat(
    world: World, server: LoopbackServer, go: Go
) -> None:
    """Blocks edited between the last beat and the answer."""

    class Editing(Worker):
        def __call__(self, *arguments: Any) -> Answer:
            answer = super().__call__(*arguments)
            measured = answer.outcome.measurement
            assert measured is not None
            halved = tuple(one // 2 for one in measured.blocks.durations_ns)
            blocks = measured.blocks.model_copy(update={"durations_ns": halved})
            measured = measured.model_copy(update={"blocks": blocks})
            return answer.model_copy(update={"outcome": Measured(measurement=measured)})

    verdict = server.beats_verdict(go(Editing(world)))
    assert (verdict["passed"], verdict["effect"]) == (False, "unranked")


# -- the network ----------------------------------------------------------------------------------


def problems(result: Result) -> list[str | None]:
    return [beat.problem for beat in result.beats]


def test_a_slow_network_is_allowed_for(world: World, server: LoopbackServer, go: Go) -> None:
    async def slow(send: Send) -> bool:
        world.pass_ns(100_000_000)
        return False

    world.network = slow
    verdict = server.beats_verdict(go(Worker(world, 20)))
    assert (verdict["passed"], verdict["figures"]["verdict"]) == (True, "bounded")
    assert verdict["figures"]["within_share"] >= 0.02


def test_an_answer_too_late_is_not_used_and_costs_nothing(
    world: World, server: LoopbackServer, go: Go
) -> None:
    async def late_once(send: Send) -> bool:
        world.network = nothing
        await asyncio.sleep(0.7)
        return False

    world.network = late_once
    result = go(Worker(world))
    assert problems(result) == ["late", None]
    verdict = server.beats_verdict(result)
    assert (verdict["passed"], verdict["checked"]) == (True, False)
    assert "no signed time of when timing began (late)" in verdict["sentence"]


def test_no_answer_at_all_never_holds_the_worker(
    world: World, server: LoopbackServer, go: Go
) -> None:
    """The worker has ended before the network gives the first beat back."""
    given_back = threading.Event()
    ended_first: list[bool] = []

    async def hanging(send: Send) -> bool:
        while not given_back.is_set():
            await asyncio.sleep(0.02)
        return False

    def ended() -> None:
        ended_first.append(not given_back.is_set())
        given_back.set()

    world.network = hanging
    result = go(Worker(world, ended=ended, waits=False))
    assert ended_first == [True]
    assert isinstance(result.outcome, Measured)
    assert server.beats_verdict(result)["passed"]


async def server_error(send: Send) -> bool:
    raise RuntimeError("the server's fault")


async def another_time(send: Send) -> bool:
    """A signed time that the server did not sign, as of a broken proxy."""
    body = b'{"at":"2026-11-21T04:00:00.000000Z","signature":"%sAg=="}' % (b"ac" * 42)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
    return True


async def no_json(send: Send) -> bool:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"<html>Log in</html>"})
    return True


@pytest.mark.parametrize(
    ("network", "problem"),
    [(server_error, "refused"), (another_time, "bad_answer"), (no_json, "bad_answer")],
)
def test_a_faulty_answer_costs_nothing(
    world: World, server: LoopbackServer, go: Go, network: Any, problem: str
) -> None:
    world.network = network
    result = go(Worker(world))
    assert problems(result) == [problem, problem]
    verdict = server.beats_verdict(result)
    assert (verdict["passed"], verdict["checked"]) == (True, False)


def test_a_server_that_restarts_between_beats(world: World, server: LoopbackServer, go: Go) -> None:
    def restart(number: int) -> None:
        if number == 5:
            server.stop()
            server.start()

    result = go(Worker(world, each=restart))
    assert problems(result) == [None, None]
    assert server.beats_verdict(result)["figures"]["verdict"] == "bounded"


def test_a_server_that_goes_away_loses_no_measurement(
    world: World, server: LoopbackServer, go: Go, tmp_path: Path
) -> None:
    def stop(number: int) -> None:
        if number == 5:
            server.stop()

    result = go(Worker(world, each=stop))
    assert problems(result) == [None, "unreachable"]
    (waiting,) = Outbox(Home(tmp_path / "agent").outbox).pending()
    assert waiting.result() == result
    server.start()


def test_without_a_server_nothing_is_posted(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_beats.Beats, "_run", None)  # a thread that runs it fails
    result = run(world, None, tmp_path / "agent", Worker(world, waits=False), monkeypatch)
    assert result.beats == ()
    assert "beats" not in result.model_dump()
