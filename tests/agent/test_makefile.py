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
    # Nothing of a "make test PYTHON=..." that runs this test.
    path = f"{programs}:/usr/bin:/bin" if programs else os.environ["PATH"]
    environ = {"PATH": path, "HOME": os.environ["HOME"]}
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.check_output(command, cwd=folder, env=environ, text=True)


def place_programs(folder: Path, programs: dict[str, str]) -> None:
    for name, line in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)


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


# What a machine is, the packages of its first environment, and of the second one.
MACHINES = {
    "linux": ({"uname": "echo Linux"}, ["tensorflow", "mlx"], {}),
    "linux, Python 3.14": (
        {"uname": "echo Linux", "python3": "echo True"},
        ["tensorflow", "mlx"],
        {".venv-tensorflow": ["agent", "tensorflow"]},
    ),
    "nvidia": (
        {"uname": "echo Linux", "nvidia-smi": "exit 9"},
        ["tensorflow-cuda", "mlx-cuda"],
        {".venv-cu13": ["agent", "torch", "jax-cuda", "mlx-cuda13"]},
    ),
    "mac": (
        {"uname": "echo Darwin"},
        ["mlx", "torch", "energy"],
        {".venv-tensorflow": ["tensorflow-metal"]},
    ),
}


@pytest.mark.parametrize("machine", MACHINES)
def test_what_does_not_fit_has_a_second_environment(tmp_path: Path, machine: str) -> None:
    programs, extras, second = MACHINES[machine]
    place_programs(tmp_path, programs)
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("shared", "agent", "server"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyproject.toml").touch()
    shutil.copytree(ROOT / "locks", tmp_path / "locks")
    commands = make("-n", "install", folder=tmp_path, programs=str(tmp_path)).splitlines()
    found = [
        re.search(r"(\S+)/bin/python -m .* --require-hashes (.*\.txt)", line) for line in commands
    ]
    environments = {line[1]: re.findall(r"locks/([\w-]+)", line[2]) for line in found if line}
    assert environments == {".venv": ["agent", "server", *extras]} | second
    for folder in second:
        assert any(f"environments add {folder}" in line for line in commands)


PYTHON = """#!/bin/sh
case "$1" in
  -c) echo "$2" | sed 's/.*not (3, //; s/) <= sys.*(3, / /; s/)).*//' | {{
        read lowest highest; [ {minor} -ge "$lowest" ] && [ {minor} -le "$highest" ]; }} ;;
  -m) mkdir -p "$3/bin" && ln -s "$0" "$3/bin/python" ;;
esac
"""
UV = """#!/bin/sh
[ "$1 $2 $3 $4" = "venv --quiet --seed --python" ] || exit 1
mkdir -p "$6/bin" && echo "$5" > "$6/bin/python"
chmod +x "$6/bin/python"
"""


@pytest.mark.parametrize(
    ("there", "span", "made_by"),
    [
        ({"python3": 11}, "11 14", "python3"),
        ({"python3": 14, "python3.12": 12, "python3.14": 14}, "11 14", "python3"),
        ({"python3": 9, "python3.12": 12, "python3.14": 14}, "11 14", "python3.12"),
        ({"python3": 14, "python3.14": 14}, "11 14", "python3"),
        ({"python3": 14, "python3.13": 13, "python3.12": 12}, "11 12", "python3.12"),
        ({"python3": 9, "uv": None}, "11 14", "3.13"),
        ({"python3": 14, "uv": None}, "11 12", "3.12"),
        ({"uv": None}, "11 14", "3.13"),
        ({"python3": 9}, "11 14", None),
        ({"python3": 15, "python3.14": 14}, "11 13", None),
        ({}, "11 14", None),
    ],
)
def test_an_environment_has_a_python_that_fits(
    tmp_path: Path, there: dict[str, int | None], span: str, made_by: str | None
) -> None:
    """The given one, else one on the PATH, else uv's; else the command that installs one."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sed", "uname", "mkdir", "ln", "rm", "chmod"):
        (programs / name).symlink_to(str(shutil.which(name)))
    for name, minor in there.items():
        (programs / name).write_text(PYTHON.format(minor=minor) if minor else UV)
        (programs / name).chmod(0o755)
    folder = tmp_path / "environment"
    script = ROOT / "deploy" / "virtual_environment.sh"
    command = ["/bin/sh", str(script), str(folder), *span.split(), "python3"]
    done = subprocess.run(command, env={"PATH": str(programs)}, capture_output=True, text=True)
    if made_by is None:
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].strip() in (
            "pipx install uv",
            "brew install python@3.13",
        )
        assert not folder.exists()
    else:
        assert done.returncode == 0, done.stderr
        python = folder / "bin" / "python"
        made = python.resolve().name if python.is_symlink() else python.read_text().strip()
        assert made == made_by
