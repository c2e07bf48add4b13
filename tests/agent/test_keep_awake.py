"""Keep awake: a machine does not sleep during a run."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tests.fakes.waiting import wait_for

from bench_agent.run.keep_awake import awake

# Both write their process id. One ends with the process of -w, the other runs a command.
PROGRAMS = {
    "Darwin": (
        "caffeinate",
        'while [ "$1" != -w ]; do shift; done\nwhile kill -0 "$2"; do sleep 0.05; done\n',
    ),
    "Linux": ("systemd-inhibit", 'while [ "$1" != sh ]; do shift; done\n"$@"\n'),
}
Place = Callable[[str], Path]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Puts a system's program first on the path; returns the file with its process id."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def put(system: str) -> Path:
        name, script = PROGRAMS[system]
        started = tmp_path / "started"
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho $$ > {started}\n{script}")
        program.chmod(0o755)
        return started

    return put


def started(path: Path) -> int:
    return int(wait_for(lambda: path.exists() and path.read_text()))


def family(process: int) -> list[psutil.Process]:
    return [psutil.Process(process), *psutil.Process(process).children(recursive=True)]


@pytest.mark.parametrize("system", PROGRAMS)
def test_a_machine_is_kept_awake_inside_the_block_only(place: Place, system: str) -> None:
    path = place(system)
    with awake(system):
        processes = family(started(path))
    for process in processes:
        assert wait_for(lambda process=process: not process.is_running())


@pytest.mark.parametrize("system", PROGRAMS)
def test_it_ends_with_an_agent_that_is_killed(place: Place, system: str) -> None:
    path = place(system)
    held = f"from bench_agent.run.keep_awake import awake\nwith awake({system!r}): input()"
    with subprocess.Popen([sys.executable, "-c", held], stdin=subprocess.PIPE) as agent:
        process = started(path)
        assert os.getsid(process) != os.getsid(agent.pid)  # a Ctrl-C is for the agent alone
        agent.kill()
    assert wait_for(lambda: not psutil.pid_exists(process))


@pytest.mark.parametrize("script", [None, "exit 1"])
def test_a_system_that_cannot_be_kept_awake_is_measured_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None
) -> None:
    """There is no systemd, or it has no login manager."""
    if script:
        (tmp_path / "systemd-inhibit").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "systemd-inhibit").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with awake("Linux"):
        pass
