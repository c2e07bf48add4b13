"""The summary of skipped tests at the end of a run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTLY = """
import pytest

@pytest.fixture(scope="session")
def browser():
    pytest.skip("no browser: install one")

@pytest.mark.parametrize("number", range(3))
def test_page(browser, number): ...

def test_engine():
    pytest.skip("no PyTorch: make frameworks")

@pytest.mark.only_on("windows")
def test_elsewhere(): ...

@pytest.mark.only_on(__import__("sys").platform)
def test_here(): ...
"""
PLUG_INS = ("-p", "tests.left_out", "-p", "xdist.plugin")
WHOLLY = "import pytest\npytest.importorskip('nowhere', reason='no module: pip install')"


@pytest.fixture
def run(tmp_path: Path):
    (tmp_path / "test_partly.py").write_text(PARTLY)
    (tmp_path / "test_wholly.py").write_text(WHOLLY)

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *PLUG_INS, *options],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
        )

    return run


@pytest.mark.parametrize("side_by_side", [(), ("-n", "2")])
def test_the_last_lines_say_how_many_and_why_and_a_complete_run_fails_for_each(
    run, side_by_side: tuple[str, ...]
) -> None:
    done = run(*side_by_side)
    assert done.returncode == 0, done.stdout
    last = done.stdout.splitlines()[-4:]
    assert "1 passed" in last[0]
    assert sorted(last[1:]) == [
        "Left out: 1 test, no PyTorch: make frameworks",
        "Left out: 1 test, no module: pip install",
        "Left out: 3 tests, no browser: install one",
    ]
    partly = run("--complete", "test_partly.py", *side_by_side)
    assert partly.returncode == 1
    assert "1 failed, 1 passed" in partly.stdout
    assert "3 errors" in partly.stdout
    assert "Left out: no browser: install one" in partly.stdout
    wholly = run("--complete", "test_wholly.py", *side_by_side)
    assert wholly.returncode != 0
    assert "Left out: no module" in wholly.stdout
