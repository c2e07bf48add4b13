"""``bench-agent`` whose workers train the quick fake engine, without self-test and idle gate."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.agent.test_resume import OPEN
from tests.fakes.quick_agent import HERE, QUICK_WORKER

from bench_agent.cli import run as command
from bench_agent.cli import setup
from bench_agent.cli.main import main
from bench_agent.run import run
from bench_agent.run.self_test import SelfTests
from bench_agent.worker.parent_watch import die_with


def plant() -> None:
    """Put the fakes in the agent's places."""
    worker = [sys.executable, str(QUICK_WORKER)]
    run.worker_command = lambda python=None: worker  # type: ignore[assignment]
    made = command.planned
    command.planned = lambda preset, like, selection: made(  # type: ignore[assignment]
        preset, like, replace(selection, budget_seconds=0.02)
    )
    setup.probe_all = lambda *_: {"mlx": HERE}  # type: ignore[assignment]
    SelfTests.refusal = lambda self, planned: None  # type: ignore[method-assign]
    command.IdleGate = lambda *_: OPEN  # type: ignore[assignment,misc]


def dask_setup(worker: Any) -> None:
    """As a preload of ``dask worker``: its fleets run this agent."""
    from bench_agent.fleet import worker_task

    worker_task.COMMAND = (sys.executable, str(Path(__file__)))
    os.environ.setdefault("OMP_NUM_THREADS", "1")


if __name__ == "__main__":
    die_with(int(sys.argv.pop(1)))
    plant()
    main()
