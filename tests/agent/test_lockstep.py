"""Lockstep: workers time their blocks one after the other, and none waits for ever."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, pairwise
from pathlib import Path

import pytest
from tests.fakes.workloads import TINY, job_of

from bench_agent.base.messages import BlockDone, PhaseBegan, WorkerEvent
from bench_agent.run.worker_process import run_task
from bench_agent.worker import lockstep
from bench_agent.worker.lockstep import Lockstep, LockstepClock
from bench_protocol.payload.result import Measured


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep, "PAUSE_SECONDS", 0.0)


def timed(name: str, address: str, blocks: int, log: list[tuple[str, str]]) -> None:
    events: Iterator[int] = count()

    def clock() -> int:
        now = next(events)
        log.append((name, "begins" if now % 2 == 0 else "ends"))
        return now

    read = LockstepClock(clock, address)
    for number in range(blocks):
        assert (read(), read()) == (2 * number, 2 * number + 1)


def test_blocks_alternate_and_never_overlap() -> None:
    log: list[tuple[str, str]] = []
    with ThreadPoolExecutor() as threads, Lockstep(2) as lockstep:
        sides = [threads.submit(timed, name, lockstep.address, 20, log) for name in "ab"]
        for side in sides:
            side.result()
    began, ended = log[::2], log[1::2]
    assert [what for _, what in began] == ["begins"] * 40
    assert [what for _, what in ended] == ["ends"] * 40
    assert [name for name, _ in began] == [name for name, _ in ended]
    assert all(earlier != later for earlier, later in pairwise(began))


def meeting(name: str, address: str, warm_up: int, blocks: int, log: list[str]) -> None:
    read = LockstepClock(lambda: log.append(name), address)
    for number in range(warm_up + blocks):
        if number == warm_up:
            name = name.upper()
            read.meet()
        read(), read()


def test_blocks_that_count_begin_together() -> None:
    log: list[str] = []
    with ThreadPoolExecutor() as threads, Lockstep(3) as lockstep:
        # c ends earlier and holds up no other worker.
        for side in [
            threads.submit(meeting, name, lockstep.address, warm_up, blocks, log)
            for name, warm_up, blocks in (("a", 1, 3), ("b", 6, 3), ("c", 2, 0))
        ]:
            side.result()
    began = "".join(log[::2])
    assert sorted(began[:-6]) == [*"a", *"b" * 6, *"c" * 2]
    assert began[-6:] in ("ABABAB", "BABABA")


def test_a_workers_first_block_waits_for_the_others(tmp_path: Path) -> None:
    events: list[str] = []
    warmed_up = threading.Event()

    def listener(message: WorkerEvent) -> None:
        if isinstance(message, BlockDone):
            events.append("block")
        elif isinstance(message, PhaseBegan) and message.phase == "timing":
            warmed_up.set()

    def slower(address: str) -> None:
        read = LockstepClock(lambda: 0, address)
        while not warmed_up.is_set():
            read(), read()
        for _ in range(50):
            read(), read()
        events.append("met")
        read.meet()

    with ThreadPoolExecutor() as threads, Lockstep(2) as lockstep:
        other = threads.submit(slower, lockstep.address)
        job = job_of(TINY, epochs=8, block_seconds=3600.0, warm_up_seconds=0.0)
        command = [sys.executable, "-m", "tests.fakes.quick_worker", "--turns", lockstep.address]
        answer = run_task(job, tmp_path / "log", listener=listener, command=command)
        assert isinstance(answer.outcome, Measured)
        other.result(30)
    assert events == ["met", *["block"] * len(events[1:])]
    assert len(events) > 8


IN_TURNS = """
import sys, time
from bench_agent.worker.lockstep import LockstepClock
read = LockstepClock(time.monotonic, sys.argv[1])
for _ in range(3):
    read(), read()
"""


def state(process: int) -> str:
    """As ``proc(5)`` has it; T is stopped by a signal."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.only_on("linux")
def test_who_has_no_turn_is_stopped() -> None:
    with Lockstep(2) as lockstep:
        other = subprocess.Popen([sys.executable, "-c", IN_TURNS, lockstep.address])
        seen = []

        def clock() -> str:
            deadline = time.monotonic() + 30
            while (process_state := state(other.pid)) != "T" and time.monotonic() < deadline:
                time.sleep(0.01)
            seen.append(process_state)
            return process_state

        read = LockstepClock(clock, lockstep.address)
        for _ in range(3):
            read(), read()
    assert other.wait(30) == 0
    assert seen == ["T"] * 6


@pytest.mark.only_on("linux")
def test_nobody_stays_stopped_when_there_are_no_more_turns() -> None:
    with Lockstep(2) as lockstep:
        waiting = subprocess.Popen(
            [sys.executable, "-c", IN_TURNS, lockstep.address], stderr=subprocess.DEVNULL
        )
        while state(waiting.pid) != "T":
            assert waiting.poll() is None
            time.sleep(0.01)
    assert waiting.wait(30) == 1  # an EOFError
