"""An agent of its own process that measures one honest repeat, or resumes it.

``python -m tests.evidence.faults.honest_agent HOME SERVER FRAMEWORK RECIPE`` prints each phase as
the worker enters it, and last the address of the result.
"""

import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

from bench_agent.base.home import Home
from bench_agent.base.messages import PhaseBegan, WorkerEvent
from bench_agent.plan.plan import Plan
from bench_agent.plan.presets import PRESETS
from bench_agent.run import journal
from bench_agent.run.context import RunContext
from bench_agent.run.reporter import Reporter
from bench_agent.run.run import run_plan
from bench_agent.run.run_lock import alone
from bench_protocol.catalogue.matrix import Recipe

from .fault import Setup
from .run import OPEN

WORKLOAD = "mnist-dense"


class Phases:
    """Prints the phases of a worker."""

    def heard(self, message: WorkerEvent) -> None:
        if isinstance(message, PhaseBegan):
            print(message.phase, flush=True)

    def note(self, text: str) -> None:
        print(f"note: {text}", flush=True)

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: None


def main(folder: str, server: str, framework: str, recipe: str) -> None:
    home = Home(Path(folder))
    cell = Setup(WORKLOAD, framework, cast(Recipe, recipe)).planned()
    with alone(home):
        begun = journal.unfinished(home) or journal.begin(
            home,
            secrets.token_hex(16),
            secrets.token_hex(32),
            Plan(PRESETS["smoke"], (cell,), (), 1),
        )
        reporter = cast(Reporter, Phases())
        summary = run_plan(begun, RunContext(home, reporter, server, gate=OPEN))
    print(summary.addresses[-1], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
