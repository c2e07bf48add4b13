"""Keep awake: a Mac does not sleep during a run; other systems are left alone."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench_agent.run.keep_awake import awake


@pytest.fixture
def caffeinate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake of macOS' program, first on the path; it writes its process id and waits.

    Like the real one it ends with the process that ``-w`` names; others it outlives.
    """
    started = tmp_path / "started"
    program = tmp_path / "caffeinate"
    program.write_text(
        f"#!{sys.executable} -IS\nimport os, sys, time\n"
        f"open({str(started)!r}, 'w').write(str(os.getpid()))\n"
        "watched = int(sys.argv[sys.argv.index('-w') + 1]) if '-w' in sys.argv else None\n"
        "for _ in range(600):\n"
        "    time.sleep(0.05)\n"
        "    if watched is not None:\n"
        "        try:\n"
        "            os.kill(watched, 0)\n"
        "        except ProcessLookupError:\n"
        "            break\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return started


def runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(path: Path) -> int:
    for _ in range(200):
        if path.exists() and path.read_text():
            return int(path.read_text())
        time.sleep(0.05)
    raise AssertionError("caffeinate was not started")


def test_a_mac_is_kept_awake_inside_the_block_only(caffeinate: Path) -> None:
    with awake("Darwin"):
        process = wait_for(caffeinate)
        assert runs(process)
    assert not runs(process)


def test_other_systems_start_nothing(caffeinate: Path) -> None:
    with awake("Linux"):
        pass
    assert not caffeinate.exists()


def test_it_ends_with_an_agent_that_is_killed(caffeinate: Path) -> None:
    held = "from bench_agent.run.keep_awake import awake\nwith awake('Darwin'): input()"
    with subprocess.Popen([sys.executable, "-c", held], stdin=subprocess.PIPE) as agent:
        process = wait_for(caffeinate)
        assert os.getsid(process) != os.getsid(agent.pid)  # a Ctrl-C is for the agent alone
        agent.kill()
    for _ in range(200):
        if not runs(process):
            break
        time.sleep(0.05)
    assert not runs(process)


def test_an_error_inside_ends_it_too(caffeinate: Path) -> None:
    def fail() -> None:
        with awake("Darwin"):
            wait_for(caffeinate)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not runs(wait_for(caffeinate))
