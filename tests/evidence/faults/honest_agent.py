"""An agent of its own process that measures an honest run, or resumes it.

``python -m tests.evidence.faults.honest_agent HOME SERVER WORKLOAD RECIPE`` measures one repeat in
each framework. It prints ``repeat`` before each, its phases, and the address of each result.
"""

import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

from bench_agent.base.home import Home
from bench_agent.base.messages import PhaseBegan, WorkerEvent
from bench_agent.plan.plan import Plan, PlannedCell
from bench_agent.plan.presets import PRESETS
from bench_agent.remote.submit import Delivery
from bench_agent.run import journal
from bench_agent.run.context import RunContext
from bench_agent.run.reporter import Reporter
from bench_agent.run.run import run_plan
from bench_agent.run.run_lock import alone
from bench_protocol.catalogue.matrix import Recipe

from .fault import OPEN, Setup

FRAMEWORKS = ("mlx", "torch", "jax", "tensorflow")
PRESET = PRESETS["smoke"]


class Lines:
    """Prints a line for each event of a run."""

    def __init__(self, server: str) -> None:
        self._server = server

    def started(self, repeat: int, planned: PlannedCell) -> None:
        print("repeat", flush=True)

    def heard(self, message: WorkerEvent) -> None:
        if isinstance(message, PhaseBegan):
            print(message.phase, flush=True)

    def delivered(self, delivery: Delivery) -> None:
        is_sent = delivery.state == "sent"
        print(delivery.address(self._server) if is_sent else delivery.state, flush=True)

    def note(self, text: str) -> None:
        print(f"note: {text}", flush=True)

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: None


def main(folder: str, server: str, workload: str, recipe: str) -> None:
    home = Home(Path(folder))
    cells = tuple(
        Setup(workload, framework, cast(Recipe, recipe)).planned(PRESET.timing)
        for framework in FRAMEWORKS
    )
    with alone(home):
        begun = journal.unfinished(home) or journal.begin(
            home, secrets.token_hex(16), secrets.token_hex(32), Plan(PRESET, cells, (), 1)
        )
        run_plan(begun, RunContext(home, cast(Reporter, Lines(server)), server, gate=OPEN))


if __name__ == "__main__":
    main(*sys.argv[1:])
