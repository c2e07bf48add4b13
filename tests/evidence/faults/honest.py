"""``--honest N``: how often an honest repeat is refused, doubted or too busy to measure.

At least N repeats in ten conditions and four frameworks, in turns of ``naive`` and ``tuned``, with
the default number of threads. All have one owner, so no comparison with other owners is in it.
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
from .run import agreed, row_of, served

Kind = Literal["ranked", "in doubt", "too busy", "refused"]
KINDS: tuple[Kind, ...] = ("ranked", "in doubt", "too busy", "refused")
FRAMEWORKS = ("mlx", "torch", "jax", "tensorflow")
RECIPES = ("naive", "tuned")
HONEST_TRUST = 3
MOST_REFUSED = 0.01
# Tasks that wait for the server's recomputation, while others run.
WAITING = 4
# Of a repeat with another beside it, before any has ended.
SECONDS_EACH = 13.0


@dataclass(frozen=True)
class Task:
    """One repeat of a condition, or as many as it has agents at once."""

    condition: Condition
    framework: str
    recipe: str


@dataclass(frozen=True)
class Honest:
    """What became of one honest repeat."""

    task: Task
    kind: Kind
    reason: str = ""


def tasks(repeats: int) -> list[Task]:
    """At least this many repeats, every condition and framework equally often."""
    made: list[Task] = []
    rounds = ceil(repeats / len(CONDITIONS) / len(FRAMEWORKS))
    for number in range(rounds):
        recipe = RECIPES[number % 2]
        for condition in CONDITIONS:
            if number % condition.agents == 0:
                made += [Task(condition, framework, recipe) for framework in FRAMEWORKS]
    return made


class Runs:
    """Runs tasks against one server, at most ``workers`` agents at a time."""

    def __init__(self, server: str, folder: Path, workers: int) -> None:
        self._server, self._folder = server, folder
        self._prepared = agreed(server, Home(folder / "prepared"))
        self._free, self._taking = threading.Semaphore(workers), threading.Lock()
        self._numbers, self._used = count(), dict[str, Path]()
        self._workers = workers

    def __call__(self, task: Task) -> list[Honest]:
        """Run a task; the server may recompute meanwhile what it started with."""
        condition, homes = task.condition, {}

        def start(*prefix: str, home_of: Agent | None = None) -> Agent:
            home = homes[home_of] if home_of else self._new_home(task)
            command = (*prefix, *condition.prefix, *AGENT, str(home), self._server)
            agent = Agent(*command, task.framework, task.recipe, environ=condition.environ)
            homes[agent] = home
            return agent

        with ExitStack() as held:
            with self._taking:  # one task takes all that it needs, or none
                for _ in range(min(condition.agents, self._workers)):
                    held.enter_context(self._free)
            try:
                agents = condition.run(start)
            finally:
                for agent in homes:
                    agent.process.kill()
        return [self._judged(task, agent) for agent in agents]

    def _new_home(self, task: Task) -> Path:
        if task.condition.again and task.framework in self._used:
            return self._used[task.framework]
        home = self._folder / f"agent-{next(self._numbers)}"
        shutil.copytree(self._prepared.root, home)
        if task.condition.again:
            Agent(*AGENT, str(home), self._server, task.framework, task.recipe).until()
            self._used[task.framework] = home
        return home

    def _judged(self, task: Task, agent: Agent) -> Honest:
        last = agent.said[-1] if agent.said else "nothing"
        if not last.startswith(self._server):
            return Honest(task, "refused", f"no result: {' | '.join(agent.said[-3:])}")
        try:
            row = row_of(self._server, last.rpartition("/")[2])
        except ServerUnreachable as error:
            return Honest(task, "refused", str(error))
        failed = [each["sentence"] for each in row["verdicts"] if not each["passed"]]
        reason = row["unranked_reason"] or "; ".join(failed)
        if row["failure_kind"] == "too_busy":
            return Honest(task, "too busy", reason)
        if not row["ranked"]:
            return Honest(task, "refused", reason)
        return Honest(task, "ranked" if row["trust_level"] >= HONEST_TRUST else "in doubt", reason)


def run(repeats: int, workers: int) -> int:
    """Run all, print each outcome and the table. 1 if more than 1 % is refused."""
    for rate in ("ADDRESS", "ENROLL"):
        os.environ.setdefault(f"BENCH_SERVER_{rate}_RATE", "off")
    planned, outcomes, began = tasks(repeats), list[Honest](), time.monotonic()
    total = sum(task.condition.agents for task in planned)
    print(f"{total} repeats, about {total * SECONDS_EACH / workers / 60:.0f} min", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="trainmark-honest-", ignore_cleanup_errors=True) as name,
        served(Path(name)) as server,
        ThreadPoolExecutor(WAITING * workers) as pool,
    ):
        runs = Runs(server, Path(name), workers)
        running = [pool.submit(runs, task) for task in planned]
        try:
            for done in as_completed(running):
                for outcome in done.result():
                    outcomes.append(outcome)
                    left = (time.monotonic() - began) / len(outcomes) * (total - len(outcomes))
                    print(line(outcome, len(outcomes), total, left), flush=True)
        finally:  # also of a run that is ended
            pool.shutdown(wait=False, cancel_futures=True)
            print(f"\n{table(outcomes)}\n", flush=True)
    refused = sum(outcome.kind == "refused" for outcome in outcomes)
    print(f"refused: {share(refused, len(outcomes))}; load {os.getloadavg()[0]:.1f} at the end")
    return 1 if refused > MOST_REFUSED * len(outcomes) else 0


def line(outcome: Honest, number: int, total: int, left_seconds: float) -> str:
    task = outcome.task
    return (
        f"{number:3}/{total}  {left_seconds / 60:4.1f} min left  {task.condition.words:38} "
        f"{task.framework:10} {task.recipe:5}  {outcome.kind:8}  {outcome.reason}"
    )


def table(outcomes: Sequence[Honest]) -> str:
    """Markdown: a row a condition, a row a framework, and one for all."""
    return people.markdown(("honest repeats", "n", *KINDS, "refused (95 %)"), rows(outcomes))


def rows(outcomes: Sequence[Honest]) -> Iterator[tuple[str, ...]]:
    groups = {each.words: [o for o in outcomes if o.task.condition == each] for each in CONDITIONS}
    groups |= {name: [o for o in outcomes if o.task.framework == name] for name in FRAMEWORKS}
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
