"""Help and wrong command lines of both programs, whose commands ``base/lazy_commands.py`` lists."""

import re
from functools import cache
from typing import Any

import pytest
from typer.testing import CliRunner

from bench_agent.cli import main as agent
from bench_server.cli import main as server
from bench_server.settings import Settings

PROGRAMS: dict[str, tuple[Any, Any]] = {
    "bench-agent": (agent.app, agent.Commands),
    "bench-server": (server.main, server.Commands),
}
# Typer's names of types, which say nothing of a value's meaning, and ranges.
NOISE = ("<bool", "<int", "<float", "<str", "<path", "<file", "list[", "x>=", "<=x", " TEXT ")
OPTIONS_OF_WORDS = {"--name", "--reason"}
LISTED = [f"{program} {name}" for program, (_, of) in PROGRAMS.items() for name in of.table]
SUBCOMMANDS = [
    f"{program} {name} {subcommand}"
    for program, (_, of) in PROGRAMS.items()
    for name in of.table
    for subcommand in getattr(of.load(name), "commands", {})
]
HELPED = [*PROGRAMS, *LISTED, *SUBCOMMANDS]


@cache
def help_of(line: str, columns: int = 80) -> str:
    program, *command = line.split()
    asked = [*command, "--help"]
    done = CliRunner().invoke(PROGRAMS[program][0], asked, env={"COLUMNS": str(columns)})
    assert done.exit_code == 0
    return done.stdout


@pytest.mark.parametrize("line", LISTED)
def test_a_listed_command_is_the_one_that_runs(line: str) -> None:
    program, name = line.split()
    _, of = PROGRAMS[program]
    command, listed = of.load(name), of.table[name][1]
    assert command.name == name
    if program == "bench-server":
        assert command.help.partition("\n")[0] == listed
    # The agent's own help starts with the same words; it may be longer.
    assert command.help.startswith(listed.removesuffix(".").split(",")[0].split(":")[0])


@pytest.mark.parametrize("line", HELPED)
def test_help_names_values_by_what_they_are(line: str) -> None:
    shown = help_of(line).splitlines()
    assert any("--help" in one for one in shown)
    for one in shown:
        if not any(option in one for option in OPTIONS_OF_WORDS):
            assert not [noise for noise in NOISE if noise in one], one


def test_help_names_no_setting_without_its_prefix() -> None:
    """``DATABASE_URL`` would be another variable."""
    names = "|".join(name.upper() for name in Settings.model_fields if "_" in name)
    for line in HELPED:
        if line.startswith("bench-server"):
            assert not re.search(rf"(?<!\w)({names})\b", help_of(line)), line


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("bench-agent verify", "RESULT"),
        ("bench-agent results hide", "RESULT_ID"),
        ("bench-agent results export", "FILE"),
        ("bench-agent data fetch", "NAME"),
        ("bench-agent environments add", "PATH"),
        ("bench-server export", "FILE"),
        ("bench-server keys approve", "KEY_ID"),
        ("bench-server results flag", "RESULT_ID"),
    ],
)
def test_an_argument_is_named_by_what_it_is(line: str, named: str) -> None:
    assert named in help_of(line).partition("Arguments")[2].partition("Options")[0].split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("bench-agent plan --batch-size 0", "--batch-size takes a whole number from 1 on, not '0'"),
        ("bench-agent plan --batch-size x", "--batch-size takes a whole number from 1 on, not 'x'"),
        ("bench-agent plan --repeats 5000", "--repeats takes a whole number from 1 to 1,000, not "),
        ("bench-agent plan --repeats 1.5", "--repeats takes a whole number from 1 to 1,000, not "),
        ("bench-agent plan --budget-seconds nan", "--budget-seconds takes a number from 0.5 to 86"),
        ("bench-agent plan --budget-seconds inf", "--budget-seconds takes a number from 0.5 to 86"),
        ("bench-agent run --wait-seconds -1", "--wait-seconds takes a number from 0 to 86,400, "),
        ("bench-agent run --help-others yess", "unknown --help-others 'yess'; did you mean yes?"),
        ("bench-agent keys shwo", "unknown command 'shwo'; did you mean show? There are: show, "),
        ("bench-agent plan --wrokload x", "unknown option '--wrokload'; did you mean --workload?"),
        ("bench-agent plan --colour x", "unknown option '--colour'; bench-agent plan --help lists"),
        ("bench-agent plan --framework jax torch", "unexpected 'torch': repeat the option for e"),
        ("bench-agent status now", "unexpected 'now': bench-agent status --help shows what it ta"),
        ("bench-agent plan --preset", "--preset needs a value"),
        ("bench-agent plan --json=yes", "--json takes no value"),
        ("bench-agent verify", "RESULT is missing: a result's address, a bundle in a file"),
        ("bench-server export all.csv --keep-days 0", "--keep-days takes a whole number from 1 on"),
        ("bench-server serve --port 99999", "--port takes a whole number from 0 to 65,535, not '9"),
        ("bench-server create-invite --days 400", "--days takes a number from 0.01 to 365, not '4"),
        ("bench-server migrat", "unknown command 'migrat'; did you mean migrate? There are: serve"),
        ("bench-server keys lsit", "unknown command 'lsit'; did you mean list? There are: list, "),
        ("bench-server restore", "FILE is missing: a file that bench-server backup made"),
        ("bench-server project --onec", "unknown option '--onec'; did you mean --once?"),
    ],
)
def test_a_wrong_command_line_ends_in_one_line(line: str, words: str) -> None:
    program, *command = line.split()
    wrong = CliRunner().invoke(PROGRAMS[program][0], command, prog_name=program)
    assert wrong.exit_code == 2
    named = "bench-server: " if program == "bench-server" else ""
    assert wrong.stderr.startswith(f"{named}{words}")
    assert wrong.stderr.count("\n") == 1
    assert wrong.stdout == ""


@pytest.mark.parametrize("line", HELPED)
def test_help_breaks_no_word(line: str) -> None:
    whole = set(help_of(line, 200).split())
    for columns in (60, 80):
        if (line, columns) != ("bench-server verify-log", 60):  # an option has 24 letters
            words = {
                word for word in help_of(line, columns).split() if not set(word) & set("─╭╮╰╯")
            }
            assert words <= whole, columns
