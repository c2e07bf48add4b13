"""An agent process to be killed: it resumes the run in its home, or begins one.

``quick_agent.py HOME SERVER [N]``: everything is real except the engine. The server's licence
counts as accepted. With N it kills itself at its N-th disk or network operation (a sync, a rename,
a deletion, a request), alternately before and after it.
"""

import os
import secrets
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from tests.agent.test_resume import OPEN, Quiet

from bench_agent.base.home import Home
from bench_agent.base.messages import FoundDevice, Probe
from bench_agent.plan.plan import Plan, Selection, make_plan
from bench_agent.plan.presets import PRESETS
from bench_agent.run import journal
from bench_agent.run.context import RunContext
from bench_agent.run.run import run_plan
from bench_agent.run.run_lock import alone
from bench_agent.run.worker_process import run_task

REPEATS = 3
QUICK_WORKER = Path(__file__).with_name("quick_worker.py")
HERE = Probe(devices=(FoundDevice(kind="cpu", index=0, name="CPU"),), environment=None)


def a_plan(repeats: int) -> Plan:
    selection = Selection(frameworks=("mlx",), repeats=repeats, budget_seconds=0.02)
    plan = make_plan(PRESETS["smoke"], selection, {"mlx": HERE})
    assert len(plan.cells) == 4
    return plan


def die_at(number: int) -> None:
    """Kill this process at its n-th step towards the disk or the network."""
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1
        if steps == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def deadly(action: Callable[..., Any]) -> Callable[..., Any]:
        def with_steps(*arguments: Any, **named: Any) -> Any:
            step()
            done = action(*arguments, **named)
            step()
            return done

        return with_steps

    for name in ("fsync", "replace", "link", "unlink"):
        setattr(os, name, deadly(getattr(os, name)))
    httpx.Client.send = deadly(httpx.Client.send)  # type: ignore[method-assign]


def main(home: Home, server: str, fatal_step: int | None, repeats: int = REPEATS) -> None:
    if fatal_step:
        die_at(fatal_step)
    with alone(home):
        note = journal.unfinished(home)
        if note is None:
            note = journal.begin(
                home, secrets.token_hex(16), secrets.token_hex(32), a_plan(repeats)
            )
        command = [sys.executable, str(QUICK_WORKER)]
        context = RunContext(
            home,
            Quiet(),
            server,
            gate=OPEN,
            run_job=lambda job, log, limits, _, listener: run_task(
                job, log, limits, command, listener
            ),
        )
        run_plan(note, context)


if __name__ == "__main__":
    fatal = int(sys.argv[3]) if len(sys.argv) > 3 else None
    main(Home(Path(sys.argv[1])), sys.argv[2], fatal)
