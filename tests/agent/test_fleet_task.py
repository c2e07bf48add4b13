"""The task of a fleet's worker: which run it begins, resumes, and takes as complete."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.agent.test_resume import CPU, NONCE, RUN_ID, stored_repeats

from bench_agent.base.errors import UsageProblem
from bench_agent.base.home import Home
from bench_agent.base.messages import Probe
from bench_agent.fleet import worker_task
from bench_agent.fleet.worker_task import Ended
from bench_agent.plan.plan import Selection, make_plan
from bench_agent.plan.presets import PRESETS
from bench_agent.run import journal

ROOT = Path(__file__).parents[2]
Task = Callable[[int], Ended]
REPEATS = 8


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def task(home: Home, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Runs the task of fleet ``f``; its agent is cut off before the n-th repeat of those left."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    worker: Any = SimpleNamespace(log_event=lambda *_: None)
    monkeypatch.setattr(distributed, "get_worker", lambda: worker)
    monkeypatch.setattr(worker_task, "COMMAND", (sys.executable, "-m", "tests.fakes.fleet_run"))
    monkeypatch.setenv("BENCH_HOME", str(home.root))
    monkeypatch.chdir(ROOT)

    def run(cut_at: int) -> Ended:
        monkeypatch.setenv("CUT_AT", str(cut_at))
        return worker_task.measure("f", [])

    return run


def other_run(home: Home) -> None:
    """Somebody begins a run by hand."""
    here = {"mlx": Probe(devices=(CPU,), environment=None)}
    plan = make_plan(PRESETS["smoke"], Selection(frameworks=("mlx",), repeats=1), here)
    journal.begin(home, "b" * 32, NONCE, replace(plan, repeats=1))


def test_a_run_is_resumed_and_not_measured_again(home: Home, task: Task) -> None:
    assert task(3).code == 130
    assert task(REPEATS).measured == REPEATS
    assert task(1) == Ended(0, REPEATS, 0), "nothing is left"
    assert len(stored_repeats(home)) == REPEATS


def test_a_run_whose_journal_was_replaced_is_not_complete(home: Home, task: Task) -> None:
    task(3)
    other_run(home)
    with pytest.raises(UsageProblem, match=f"2 of {REPEATS} measurements"):
        task(REPEATS)


def test_a_run_that_another_one_replaced_before_its_first_repeat(home: Home, task: Task) -> None:
    task(1)
    other_run(home)
    with pytest.raises(UsageProblem, match=f"0 of {REPEATS} measurements"):
        task(REPEATS)


def test_the_run_of_somebody_else_is_not_resumed(home: Home, task: Task) -> None:
    """The task was ended after its note, and before its agent wrote a journal."""
    other_run(home)
    (home.root / "fleet.json").write_text('{"fleet": "f"}')
    task(3)
    waiting = journal.unfinished(home)
    assert waiting is not None
    assert waiting.run_id == RUN_ID
