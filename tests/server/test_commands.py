"""What ``bench-server --help`` shows of its commands."""

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from bench_server.cli.main import COMMANDS, Commands, main
from bench_server.settings import Settings

# Typer's names of types, which say nothing of a value's meaning, and ranges.
NOISE = ("<bool", "<int", "<float", "<str", "<path", "<file", "list[", "x>=", "<=x", " TEXT ")
OPTIONS_OF_WORDS = {"--reason"}
HEAVY = ("sqlalchemy", "fastapi", "uvicorn", "bench_server.settings")
# Every command line that has a ``--help`` of its own.
HELPED = [
    (),
    *((name,) for name in COMMANDS),
    *(
        (name, subcommand)
        for name in COMMANDS
        for subcommand in getattr(Commands.load(name), "commands", {})
    ),
]


def help_of(*command: str) -> str:
    return CliRunner().invoke(main, [*command, "--help"], env={"COLUMNS": "80"}).stdout


@pytest.mark.parametrize("command", HELPED, ids=" ".join)
def test_help_names_values_by_what_they_are(command: tuple[str, ...]) -> None:
    lines = help_of(*command).splitlines()
    assert any("--help" in line for line in lines)
    for line in lines:
        if not any(option in line for option in OPTIONS_OF_WORDS):
            assert not [noise for noise in NOISE if noise in line], line


def test_help_names_no_setting_without_its_prefix() -> None:
    """``DATABASE_URL`` would be another variable."""
    names = "|".join(name.upper() for name in Settings.model_fields if "_" in name)
    for command in HELPED:
        assert not re.search(rf"(?<!\w)({names})\b", help_of(*command)), command


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (("export",), "FILE"),
        (("backup",), "FILE"),
        (("keys", "approve"), "KEY_ID"),
        (("results", "flag"), "RESULT_ID"),
    ],
)
def test_an_argument_is_named_by_what_it_is(command: tuple[str, ...], named: str) -> None:
    assert named in help_of(*command).partition("Arguments")[2].partition("Options")[0].split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("export all.csv --keep-days 0", "--keep-days takes a whole number from 1 on, not '0'"),
        ("serve --port x", "--port takes a whole number from 0 to 65,535, not 'x'"),
        ("serve --port 99999", "--port takes a whole number from 0 to 65,535, not '99999'"),
        ("create-invite --days 400", "--days takes a number from 0.01 to 365, not '400'"),
        ("migrat", "unknown command 'migrat'; did you mean migrate? There are: serve, "),
        ("keys lsit", "unknown command 'lsit'; did you mean list? There are: list, approve"),
        ("restore", "FILE is missing: a file that bench-server backup made"),
        ("project --onec", "unknown option '--onec'; did you mean --once?"),
    ],
)
def test_a_wrong_command_line_ends_in_one_line(line: str, words: str) -> None:
    wrong = CliRunner().invoke(main, line.split(), prog_name="bench-server")
    assert wrong.exit_code == 2
    assert wrong.stderr.startswith(f"bench-server: {words}")
    assert wrong.stderr.count("\n") == 1
    assert wrong.stdout == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_listed_command_is_the_one_that_runs(name: str) -> None:
    command = Commands.load(name)
    assert command.name == name
    assert command.help.partition("\n")[0] == COMMANDS[name][1]


@pytest.mark.parametrize(
    ("line", "imported"),
    [
        ("--help", ""),
        ("--version", ""),
        ("", ""),
        ("migrat", ""),
        ("--hepl", ""),
        ("serve --port x", ""),
        ("restore", "sqlalchemy, bench_server.settings"),
        ("keys lsit", "sqlalchemy, bench_server.settings"),
    ],
)
def test_help_and_usage_errors_import_no_other_command(line: str, imported: str) -> None:
    code = (
        "import atexit, sys; from bench_server.cli.main import main;"
        f"atexit.register(lambda: print([n for n in {HEAVY} if n in sys.modules]));"
        f"main({line.split()!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == str(imported.split(", ") if imported else [])


@pytest.mark.parametrize("columns", [60, 80])
def test_help_breaks_no_word(columns: int) -> None:
    for command in HELPED:
        if columns == 60 and command == ("verify-log",):
            continue  # its longest option has 24 letters
        narrow, wide = (
            CliRunner().invoke(main, [*command, "--help"], env={"COLUMNS": str(width)}).stdout
            for width in (columns, 200)
        )
        words = {word for word in narrow.split() if not set(word) & set("─╭╮╰╯")}
        assert words <= set(wide.split()), command
