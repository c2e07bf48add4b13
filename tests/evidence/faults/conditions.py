"""Conditions under which an honest agent runs: how it is started, and what happens to it."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
MANY = str(4 * CORES)
POOLS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
PERIOD_MICROSECONDS, QUOTA_MICROSECONDS = 100_000, 50_000
STOPPED_SECONDS = 1.5
GROUPS = Path("/sys/fs/cgroup")
AGENT = (sys.executable, "-m", "tests.evidence.faults.honest_agent")


class Agent:
    """An agent's process. ``said``: the lines that it has printed."""

    def __init__(self, *command: str, environ: Mapping[str, str] = {}) -> None:
        self.said: list[str] = []
        clean = {name: text for name, text in os.environ.items() if name != "OMP_NUM_THREADS"}
        self.process = subprocess.Popen(
            command,
            env=clean | environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def until(self, line: str | None = None) -> bool:
        """Read what it prints until it prints a line, or ends. Whether it printed it."""
        assert self.process.stdout is not None
        for read in self.process.stdout:
            self.said.append(read.rstrip("\n"))
            if self.said[-1] == line:
                return True
        self.process.wait()
        return False

    def until_timing(self) -> bool:
        """Read until its next repeat is timed for the first time, or it ends."""
        return self.until("repeat") and self.until("timing")

    def send(self, number: int) -> None:
        """Send a signal to the agent and its workers."""
        with suppress(psutil.NoSuchProcess):
            agent = psutil.Process(self.process.pid)
            for process in (agent, *agent.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(number)


Started = Callable[..., Agent]


def undisturbed(start: Started) -> None:
    start().until()


def two_at_once(start: Started) -> None:
    for agent in [start(), start()]:
        agent.until()


def stopped_shortly(start: Started) -> None:
    """All processes stop once in each timed part, as where a virtual machine is paused."""
    agent = start()
    while agent.until_timing():
        agent.send(signal.SIGSTOP)
        time.sleep(STOPPED_SECONDS)
        agent.send(signal.SIGCONT)


def killed_and_resumed(start: Started) -> None:
    """Once in each timed part."""
    agent = start()
    while agent.until_timing():
        agent.process.kill()
        agent.until()
        agent = start(home_of=agent)
        agent.until("repeat")


def with_half_a_core(start: Started) -> None:
    """A control group where one can be had, else all processes stop for half of the time."""
    with half_a_core() as prefix:
        agent, over = start(*prefix), threading.Event()
        if not prefix:
            threading.Thread(target=_half_of_the_time, args=(agent, over), daemon=True).start()
        agent.until()
        over.set()


def _half_of_the_time(agent: Agent, over: threading.Event) -> None:
    half = PERIOD_MICROSECONDS / 2e6
    while not over.wait(half):
        agent.send(signal.SIGSTOP)
        time.sleep(half)
        agent.send(signal.SIGCONT)


@contextmanager
def half_a_core() -> Iterator[tuple[str, ...]]:
    """What goes before a command so that it shares half a core with what it starts; empty where
    this process may not make control groups."""
    name = f"trainmark-{os.getpid()}-{threading.get_ident()}"
    for group, limits, members in (
        (GROUPS / "cpu" / name, {"cpu.cfs_quota_us": str(QUOTA_MICROSECONDS)}, "tasks"),
        (GROUPS / name, {"cpu.max": f"{QUOTA_MICROSECONDS} {PERIOD_MICROSECONDS}"}, "cgroup.procs"),
    ):
        try:
            group.mkdir()
            for file, text in limits.items():
                (group / file).write_text(text)
        except OSError:
            with suppress(OSError):
                group.rmdir()
            continue
        try:
            yield ("sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / members))
        finally:
            _remove(group)
        return
    yield ()


def _remove(group: Path) -> None:
    """Remove a control group once its last process has ended."""
    for _ in range(50):
        with suppress(OSError):
            group.rmdir()
        if not group.exists():
            break
        time.sleep(0.1)


@dataclass(frozen=True)
class Condition:
    """``run`` starts agents and waits for them. ``again``: the agent has run before."""

    words: str
    run: Callable[[Started], None] = undisturbed
    prefix: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    agents: int = 1
    again: bool = False


CONDITIONS = (
    Condition("nothing special"),
    Condition("one thread (OMP_NUM_THREADS=1)", environ={"OMP_NUM_THREADS": "1"}),
    Condition("lowest priority (nice 19)", prefix=("nice", "-n", "19")),
    Condition("half a core", with_half_a_core),
    Condition(
        "four times as many threads as cores",
        environ=dict.fromkeys(POOLS, MANY),
    ),
    Condition("two agents at once", two_at_once, agents=2),
    Condition(
        "other time zone and locale", environ={"TZ": "Pacific/Kiritimati", "LC_ALL": "de_DE.UTF-8"}
    ),
    Condition(f"all processes stopped for {STOPPED_SECONDS:g} s", stopped_shortly),
    Condition("killed while timing, then resumed", killed_and_resumed),
    Condition("second run of the same key", again=True),
)
