"""Hundreds of SIGKILLs at random points: every repeat is measured and posted exactly once."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest
from tests.fakes.client import get, pages
from tests.fakes.quick_agent import REPEATS, a_plan
from tests.system.conftest import Server

from bench_agent.base.home import Home
from bench_agent.cli.setup import open_client
from bench_agent.cli.submit import ask_consent
from bench_agent.remote.outbox import Outbox
from bench_agent.run import journal

KILLS = 200
LONGEST_LIFE_SECONDS = 3.0
STEPS_OF_A_RUN = 80
ORPHAN_SECONDS = 20
ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.long


class Killer:
    def __init__(self, start: Callable[[list[str]], subprocess.Popen[bytes]], seed: int) -> None:
        self.start = start
        self.random = random.Random(seed)
        self.killed: Counter[str] = Counter()

    def kill_until(self, wanted: int) -> None:
        while self.killed.total() < wanted:
            at_a_step = self.random.random() < 0.4
            step = [str(self.random.randint(1, STEPS_OF_A_RUN))] if at_a_step else []
            self._live_and_die(self.start(step), "at a step" if at_a_step else "by time")

    def _live_and_die(self, process: subprocess.Popen[bytes], how: str) -> None:
        children: list[psutil.Process] = []
        while process.poll() is None:
            try:
                process.wait(self.random.uniform(0, LONGEST_LIFE_SECONDS))
            except subprocess.TimeoutExpired:
                children = psutil.Process(process.pid).children()
                if children and self.random.random() < 0.5:
                    children[0].kill()  # the agent goes on
                    self.killed["worker"] += 1
                elif how == "by time":
                    process.kill()
        assert process.returncode in (0, -signal.SIGKILL)
        self.killed[how] += process.returncode == -signal.SIGKILL
        _, alive = psutil.wait_procs(children, timeout=ORPHAN_SECONDS)
        assert not alive, "a worker outlived its agent"


def posted(address: str) -> Counter[tuple[str, str, int]]:
    counts: Counter[tuple[str, str, int]] = Counter()
    with httpx.Client(base_url=address) as http:
        for page in pages(http, "/results?limit=100"):
            for row in page["results"]:
                signed = get(http, f"/results/{row['id']}")["result"]
                counts[(signed["run_id"], str(signed["cell"]), signed["repeat"])] += 1
    return counts


def test_two_hundred_kills_lose_and_double_nothing(
    tmp_path: Path, make_server: Callable[[], Server]
) -> None:
    server = make_server()
    server.environment["BENCH_SERVER_ENROLL_RATE"] = "off"
    server.environment["BENCH_SERVER_ADDRESS_RATE"] = "off"  # every result is read in the end
    address = server.start()
    home = Home(tmp_path / "agent")
    client = open_client(address, home)
    ask_consent(client, None, yes=True)
    client.close()
    log = (tmp_path / "agent.log").open("wb")

    def start(more: list[str]) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.fakes.quick_agent", str(home.root), address, *more]
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

    killer = Killer(start, seed=random.SystemRandom().randrange(2**32))
    began = time.monotonic()
    with log:
        killer.kill_until(KILLS)
        while journal.unfinished(home):
            assert start([]).wait() == 0
    runs = {entry.result().run_id for entry in Outbox(home.outbox).sent()}
    repeats = posted(address)
    print(
        f"{killer.killed.total()} kills ({dict(killer.killed)}) in "
        f"{time.monotonic() - began:.0f} s, {len(runs)} runs, {repeats.total()} results"
    )
    assert set(repeats.values()) == {1}
    plan = a_plan(REPEATS)
    assert len(repeats) == len(runs) * plan.repeats * len(plan.cells)
    assert len(list(Outbox(home.outbox).sent())) == len(repeats)
    assert not list(Outbox(home.outbox).pending())
    assert not list(Outbox(home.outbox).refused())
