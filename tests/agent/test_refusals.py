"""A run that could measure nothing useful does not start."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench_agent.base.errors import HomeProblem, UsageProblem
from bench_agent.base.home import Home
from bench_agent.doctor import table
from bench_agent.doctor.table import Surroundings, refuse_unfit
from bench_agent.run.run_lock import alone

HOLDS_THE_LOCK = """
import sys, time
from pathlib import Path
from bench_agent.run.run_lock import alone
from bench_agent.base.home import Home
with alone(Home(Path(sys.argv[1]))):
    print(flush=True)
    time.sleep(600)
"""


def on(monkeypatch: pytest.MonkeyPatch, **facts: object) -> None:
    class Elsewhere(Surroundings):
        wsl = facts.get("wsl")

        def __init__(self, home: Home) -> None:
            super().__init__(home)
            self.system = str(facts.get("system", "Linux"))

    monkeypatch.setattr(table, "Surroundings", Elsewhere)


def test_this_system_is_fit(tmp_path: Path) -> None:
    refuse_unfit(Home(tmp_path / "home"))
    assert not (tmp_path / "home").exists()


def test_an_unfit_system_is_refused_with_its_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on(monkeypatch, wsl=1)
    with pytest.raises(UsageProblem, match=r"WSL 1 .*\n  fix: wsl.exe --set-version"):
        refuse_unfit(Home(tmp_path))
    on(monkeypatch, system="Windows")
    with pytest.raises(UsageProblem, match="wsl --install"):
        refuse_unfit(Home(tmp_path))


def test_two_runs_at_once_are_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS_THE_LOCK, str(home.root)], stdout=subprocess.PIPE
    ) as first:
        assert first.stdout is not None
        first.stdout.readline()
        with pytest.raises(UsageProblem, match="another run"), alone(home):
            pass
        first.kill()
    with alone(home):
        pass


def test_a_lock_that_cannot_be_made_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "run.lock").mkdir()
    with pytest.raises(HomeProblem, match="run.lock"), alone(Home(tmp_path)):
        pass
