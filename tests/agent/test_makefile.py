"""The Makefile on old systems: macOS' make 3.81 and BSD sed, GNU make 4.2.1."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
BUILTINS = ("command", "type", "test", "cd")
# GNU make's characters that need a shell (job.c, sh_chars_sh).
SHELL_CHARACTERS = set('#;"*?[]&|<>(){}$`^~!')


def make(*arguments: str, folder: Path = ROOT, programs: str = "") -> str:
    environ = os.environ | ({"PATH": f"{programs}:/usr/bin:/bin"} if programs else {})
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.check_output(command, cwd=folder, env=environ, text=True)


def linux(folder: Path, driver: bool) -> None:
    programs = {"uname": "echo Linux"} | ({"nvidia-smi": "exit 9"} if driver else {})
    for name, line in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)


@pytest.mark.parametrize(("driver", "extras"), [(True, "tensorflow-cuda,mlx-cuda"), (False, None)])
def test_an_nvidia_driver_chooses_cuda(tmp_path: Path, driver: bool, extras: str | None) -> None:
    linux(tmp_path, driver)
    database = make("-pn", "help", programs=str(tmp_path))
    assert f"EXTRAS := {extras or 'tensorflow,mlx'}\n" in database


def test_a_builtin_of_the_shell_is_started_by_a_shell() -> None:
    commands = re.findall(r"\$\(shell ([^)]*)\)", MAKEFILE)
    assert commands
    for command in commands:
        if command.split()[0] in BUILTINS:
            assert SHELL_CHARACTERS & set(command), command


def test_no_escape_is_left_to_sed() -> None:
    """Old BSD seds print \\t as t."""
    assert not re.search(r"sed .*\\[tn]", MAKEFILE)


def test_help_is_a_table() -> None:
    lines = make("help").splitlines()
    assert len(lines) == len(re.findall(r"^[a-z-]+:.*## ", MAKEFILE, re.MULTILINE))
    assert all(re.fullmatch(r"[a-z-]+ +\S.*", line) and line[20] != " " for line in lines)


@pytest.mark.parametrize("driver", [True, False])
def test_make_install_gives_each_cuda_an_environment(tmp_path: Path, driver: bool) -> None:
    linux(tmp_path, driver)
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("shared", "agent", "server"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyproject.toml").touch()
    shutil.copytree(ROOT / "locks", tmp_path / "locks")
    commands = make("-n", "install", folder=tmp_path, programs=str(tmp_path)).splitlines()
    found = [re.match(r"(\S+)/bin/python .* --require-hashes (.*\.txt)", line) for line in commands]
    environments = {line[1]: re.findall(r"locks/([\w-]+)", line[2]) for line in found if line}
    extras = ["tensorflow-cuda", "mlx-cuda"] if driver else ["tensorflow", "mlx"]
    second = {".venv-cu13": ["agent", "torch", "jax-cuda", "mlx-cuda13"]} if driver else {}
    assert environments == {".venv": ["agent", "server", *extras]} | second
    added = [line for line in commands if "environments add .venv-cu13" in line]
    assert bool(added) == driver
