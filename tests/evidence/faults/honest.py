"""``--honest N``: how often an honest repeat is refused, doubted or too busy to measure.

At least N repeats in ten conditions and four frameworks, with the default number of threads, in
turns of three workloads and three recipes. A run has one repeat in each framework; so they have one
challenge, and the server recomputes one session for all four. All runs have one owner, so no
comparison with other owners is in it.
"""

import os
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from math import ceil, sqrt
from pathlib import Path
from typing import Literal

from bench_agent.base.errors import ServerUnreachable
from bench_agent.base.home import Home
from bench_protocol.base import format as people

from .conditions import AGENT, CONDITIONS, Agent, Condition
from .honest_agent import FRAMEWORKS
from .run import agreed, row_of, served

Kind = Literal["ranked", "in doubt", "too busy", "refused"]
KINDS: tuple[Kind, ...] = ("ranked", "in doubt", "too busy", "refused")
# Dense layers alone, with dropout, with convolutions.
WORKLOADS = ("mnist-dense", "fashion-mlp", "mnist-cnn")
RECIPES = ("naive", "pipeline", "tuned")
HONEST_TRUST = 3
MOST_REFUSED = 0.01
# Tasks that wait for the server's recomputation, while others run.
WAITING = 4
# Of a repeat with another beside it, before any has ended.
SECONDS_EACH = 13.0
# The table is printed after this many repeats, so that a killed run has one as well.
REPEATS_A_TABLE = 40


@dataclass(frozen=True)
class Task:
    """A run under a condition, or as many as it has agents at once."""

    condition: Condition
    workload: str
    recipe: str

    @property
    def repeats(self) -> int:
        return self.condition.agents * len(FRAMEWORKS)


@dataclass(frozen=True)
class Honest:
    """What became of one honest repeat."""

    task: Task
    framework: str
    kind: Kind
    reason: str = ""


def tasks(repeats: int) -> list[Task]:
    """At least this many repeats, every condition and framework equally often."""
    made: list[Task] = []
    for number in range(ceil(repeats / len(CONDITIONS) / len(FRAMEWORKS))):
        for place, condition in enumerate(CONDITIONS):
            turn, rest = divmod(number, condition.agents)
            if not rest:  # in three turns each workload and recipe, then in other pairs
                workload = WORKLOADS[(place + turn) % len(WORKLOADS)]
                recipe = RECIPES[(place // 3 + turn + turn // 3) % len(RECIPES)]
                made.append(Task(condition, workload, recipe))
    return made


class Runs:
    """Runs tasks against one server, at most ``workers`` agents at a time."""

    def __init__(self, server: str, folder: Path, workers: int) -> None:
        self._server, self._folder = server, folder
        self._prepared = agreed(server, Home(folder / "prepared"))
        self._free, self._taking = threading.Semaphore(workers), threading.Lock()
        self._numbers, self._used = count(), list[Path]()
        self._workers, self._running, self._over = workers, set[Agent](), False

    def __call__(self, task: Task) -> list[Honest]:
        """Run a task; the server may recompute meanwhile what it started with."""
        condition, homes = task.condition, dict[Agent, Path]()

        def start(*prefix: str, home_of: Agent | None = None) -> Agent:
            if self._over:
                raise InterruptedError("no agent starts any more")
            home = homes[home_of] if home_of else self._home(condition)
            command = (*prefix, *condition.prefix, *AGENT, str(home), self._server)
            agent = Agent(*command, task.workload, task.recipe, environ=condition.environ)
            self._running.add(agent)
            homes[agent] = home
            return agent

        with ExitStack() as held:
            with self._taking:  # one task takes all that it needs, or none
                for _ in range(min(condition.agents, self._workers)):
                    held.enter_context(self._free)
            try:
                condition.run(start)
            finally:
                for agent in homes:
                    agent.process.kill()
                self._running.difference_update(homes)
        self._used += {*homes.values()}
        return self._judged(task, [line for agent in homes for line in agent.said])

    def end(self) -> None:
        """Kill the agents that run, and start no more."""
        self._over = True
        for agent in tuple(self._running):
            agent.process.kill()

    def _home(self, condition: Condition) -> Path:
        if condition.again and self._used:
            return self._used.pop()
        home = self._folder / f"agent-{next(self._numbers)}"
        shutil.copytree(self._prepared.root, home)
        return home

    def _judged(self, task: Task, said: Sequence[str]) -> list[Honest]:
        outcomes, reason = list[Honest](), f"no result: {' | '.join(said[-3:])}"
        for address in dict.fromkeys(line for line in said if line.startswith(self._server)):
            try:
                outcomes.append(self._outcome(task, address))
            except ServerUnreachable as error:
                reason = str(error)
        missing = Counter(dict.fromkeys(FRAMEWORKS, task.condition.agents))
        missing.subtract(outcome.framework for outcome in outcomes)
        lost = (Honest(task, framework, "refused", reason) for framework in missing.elements())
        return [*outcomes, *lost]

    def _outcome(self, task: Task, address: str) -> Honest:
        row = row_of(self._server, address.rpartition("/")[2])
        failed = [each["sentence"] for each in row["verdicts"] if not each["passed"]]
        reason = row["unranked_reason"] or "; ".join(failed)
        kind: Kind = "too busy" if row["failure_kind"] == "too_busy" else "refused"
        if row["ranked"]:
            kind = "ranked" if row["trust_level"] >= HONEST_TRUST else "in doubt"
        return Honest(task, row["framework"], kind, reason)


def run(repeats: int, workers: int) -> int:
    """Run all, print each outcome and the table. 1 if more than 1 % is refused."""
    for rate in ("ADDRESS", "ENROLL"):
        os.environ.setdefault(f"BENCH_SERVER_{rate}_RATE", "off")
    planned, outcomes = tasks(repeats), list[Honest]()
    total = sum(task.repeats for task in planned)
    print(f"{total} repeats, about {total * SECONDS_EACH / workers / 60:.0f} min", flush=True)
    with (
        ThreadPoolExecutor(WAITING * workers) as pool,  # ended last: tasks wait for the server
        tempfile.TemporaryDirectory(prefix="trainmark-honest-", ignore_cleanup_errors=True) as name,
        served(Path(name)) as server,
    ):
        runs, began = Runs(server, Path(name), workers), time.monotonic()
        running = [pool.submit(runs, task) for task in planned]
        try:
            for done in as_completed(running):
                before = len(outcomes)
                for outcome in done.result():
                    outcomes.append(outcome)
                    left = (time.monotonic() - began) / len(outcomes) * (total - len(outcomes))
                    print(line(outcome, len(outcomes), total, left), flush=True)
                if before // REPEATS_A_TABLE < len(outcomes) // REPEATS_A_TABLE:
                    print(f"\n{table(outcomes)}\n", flush=True)
        finally:  # also of a run that is ended
            pool.shutdown(wait=False, cancel_futures=True)
            runs.end()
            print(f"\n{table(outcomes)}\n", flush=True)
    refused = sum(outcome.kind == "refused" for outcome in outcomes)
    print(f"refused: {share(refused, len(outcomes))}; load {os.getloadavg()[0]:.1f} at the end")
    return 1 if refused > MOST_REFUSED * len(outcomes) else 0


def line(outcome: Honest, number: int, total: int, left_seconds: float) -> str:
    task = outcome.task
    return (
        f"{number:3}/{total}  {left_seconds / 60:4.1f} min left  {task.condition.words:38} "
        f"{outcome.framework:10} {task.recipe:8} {task.workload:11}  {outcome.kind:8}  "
        f"{outcome.reason}"
    )


def table(outcomes: Sequence[Honest]) -> str:
    """Markdown: a row a condition, framework, workload and recipe, and one for all."""
    return people.markdown(("honest repeats", "n", *KINDS, "refused (95 %)"), rows(outcomes))


def rows(outcomes: Sequence[Honest]) -> Iterator[tuple[str, ...]]:
    groups = {each.words: [o for o in outcomes if o.task.condition == each] for each in CONDITIONS}
    groups |= {name: [o for o in outcomes if o.framework == name] for name in FRAMEWORKS}
    groups |= {name: [o for o in outcomes if o.task.workload == name] for name in WORKLOADS}
    groups |= {name: [o for o in outcomes if o.task.recipe == name] for name in RECIPES}
    for words, some in (*groups.items(), ("all", list(outcomes))):
        if some:
            kinds = Counter(outcome.kind for outcome in some)
            counts = (str(kinds[kind]) for kind in KINDS)
            yield (words, str(len(some)), *counts, share(kinds["refused"], len(some)))


def share(part: int, whole: int) -> str:
    """``3.0 % (1.4 to 6.4)``: a share with its 95 % interval (Wilson 1927)."""
    low, high = wilson(part, whole)
    return f"{100 * part / whole:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def wilson(part: int, whole: int, z: float = 1.96) -> tuple[float, float]:
    """The interval of a share whose normal approximation does not leave 0 to 1."""
    rate, weight = part / whole, z * z / whole
    middle = (rate + weight / 2) / (1 + weight)
    half = z * sqrt(rate * (1 - rate) / whole + weight / (4 * whole)) / (1 + weight)
    return max(0.0, middle - half), min(1.0, middle + half)
