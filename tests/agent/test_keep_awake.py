"""Keep awake: a Mac does not sleep during a run; other systems are left alone."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.fakes.waiting import wait_for

from bench_agent.run.keep_awake import awake


@pytest.fixture
def caffeinate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake first on the path: it writes its process id, and ends with the process of ``-w``."""
    started = tmp_path / "started"
    program = tmp_path / "caffeinate"
    program.write_text(
        f'#!/bin/sh\necho $$ > {started}\nwhile [ "$1" != -w ]; do shift; done\n'
        'while kill -0 "$2"; do sleep 0.05; done\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return started


def started(path: Path) -> int:
    return int(wait_for(lambda: path.exists() and path.read_text()))


def test_a_mac_is_kept_awake_inside_the_block_only(caffeinate: Path) -> None:
    with awake("Darwin"):
        process = started(caffeinate)
        assert psutil.pid_exists(process)
    assert not psutil.pid_exists(process)


def test_other_systems_start_nothing(caffeinate: Path) -> None:
    with awake("Linux"):
        pass
    assert not caffeinate.exists()


def test_it_ends_with_an_agent_that_is_killed(caffeinate: Path) -> None:
    held = "from bench_agent.run.keep_awake import awake\nwith awake('Darwin'): input()"
    with subprocess.Popen([sys.executable, "-c", held], stdin=subprocess.PIPE) as agent:
        process = started(caffeinate)
        assert os.getsid(process) != os.getsid(agent.pid)  # a Ctrl-C is for the agent alone
        agent.kill()
    assert wait_for(lambda: not psutil.pid_exists(process))
