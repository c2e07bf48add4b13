"""The README's commands exist, and the Makefile prints what it does."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import bench_agent
import bench_server
from bench_agent.cli.main import COMMANDS, app, load
from bench_server.cli.main import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
LINES = re.findall(r"^bench-agent .*", README, re.MULTILINE)


@pytest.mark.parametrize("line", LINES)
def test_every_command_of_the_readme_has_the_options_it_is_shown_with(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command = load(words.pop(0)) if words[0] in COMMANDS else get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]  # type: ignore[attr-defined]
    there = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= there, line


@pytest.mark.parametrize("name", ["plan", "run", "ab"])
def test_help_explains_every_option_that_measuring_takes(name: str) -> None:
    options = {option.name: option for option in load(name).params}
    assert [option for option in options.values() if not option.help] == []
    assert "a process of its own" in options["repeats"].help
    if name == "run":
        assert "if there is none, start one" in options["resume"].help


def test_both_programs_tell_their_version() -> None:
    for program, version in ((app, bench_agent.__version__), (main, bench_server.__version__)):
        done = CliRunner().invoke(program, ["--version"])
        assert (done.exit_code, done.stdout.split()[-1]) == (0, version)


def test_the_readme_says_how_scripts_agree_before_anything_is_posted() -> None:
    (line,) = [line for line in LINES if line.startswith("bench-agent run") and "--server" in line]
    assert "scripts agree with --yes" in line


def test_installing_says_that_it_takes_minutes_and_shows_pips_progress(tmp_path: Path) -> None:
    command = ["make", "-n", "demo", f"VENV={tmp_path}"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (install,) = [line for line in output.splitlines() if "pip" in line]
    assert "-q" not in install.split()
    assert output.index("this takes some minutes") < output.index(install)
