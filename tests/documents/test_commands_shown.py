"""The README's commands exist, and the Makefile prints what it does."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import bench_agent
import bench_server
from bench_agent.cli import main as agent
from bench_protocol.base.lazy_commands import LazyCommands
from bench_server.cli import main as server

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/**/*.md")]
PROGRAMS = "bench-agent|bench-server|make|python"
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE)


def shown() -> Iterator[str]:
    for page in PAGES:
        # Every second part is a block; a backslash joins its lines.
        parts = re.split(r"^ *```.*$", page.read_text().replace("\\\n", " "), flags=re.MULTILINE)
        blocks = [line for block in parts[1::2] for line in block.splitlines()]
        spans = [span for text in parts[::2] for span in re.findall(r"`([^`\n]+)`", text)]
        for line in (*blocks, *spans):
            # A command begins a line, a span or what the shell runs next; a comment ends it.
            for command in re.split(r"&& |; |\| |\$ ", line.partition(" #")[0]):
                if found := re.match(rf"(?:[A-Z_]+=\S* )*((?:{PROGRAMS}) .*)", command.strip()):
                    yield found[1]


@pytest.mark.parametrize("line", sorted(set(shown())))
def test_every_command_of_the_documentation_has_the_options_it_is_shown_with(line: str) -> None:
    program, *words = shlex.split(line, comments=True)
    if program == "make":
        assert {word for word in words if re.fullmatch("[a-z-]+", word)} <= {*TARGETS}, line
        words = shlex.split(" ".join(word.removeprefix("ARGS=") for word in words))
        words[:1] = re.findall(rf"^{words[0]}:.*\n.*(benchmarks\S+)", MAKEFILE, re.MULTILINE)
    if program in ("make", "python"):
        modules = [word.removesuffix(".py") for word in words if word.startswith("benchmarks")]
        for path in (ROOT / module.replace(".", "/") for module in modules):
            file = path / "__main__.py" if path.is_dir() else path.with_suffix(".py")
            options = {f'"{word}"' for word in words if word.startswith("--")}
            assert {option for option in options if option not in file.read_text()} == set(), line
        return
    commands: type[LazyCommands] = {"bench-agent": agent, "bench-server": server}[program].Commands
    group = get_command(agent.app if program == "bench-agent" else server.main)
    command = commands.load(words.pop(0)) if words[0] in commands.table else group
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    assert command is not None, line
    there = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    options = {word.partition("=")[0] for word in words if re.match("--?[a-z]", word)}
    assert options <= there | {"--help"}, line
    if getattr(command, "commands", {}):
        assert not words or words[0].startswith("-"), f"no such subcommand: {line}"


def test_commands_of_both_programs_and_of_make_are_found() -> None:
    programs = {line.split()[0] for line in shown()}
    assert programs == {"bench-agent", "bench-server", "make", "python"}


@pytest.mark.parametrize("name", ["plan", "run", "ab"])
def test_help_explains_every_option_that_measuring_takes(name: str) -> None:
    options = {option.name: option for option in agent.Commands.load(name).params}
    assert [option for option in options.values() if not option.help] == []


def test_both_programs_tell_their_version() -> None:
    for app, package in ((agent.app, bench_agent), (server.main, bench_server)):
        done = CliRunner().invoke(app, ["--version"])
        assert (done.exit_code, done.stdout.split()[-1]) == (0, package.__version__)


def test_installing_says_that_it_takes_minutes_and_shows_pips_progress(tmp_path: Path) -> None:
    command = ["make", "-n", "demo", f"VENV={tmp_path}"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (install,) = [line for line in output.splitlines() if "pip" in line]
    assert "-q" not in install.split()
    assert output.index("this takes some minutes") < output.index(install)
