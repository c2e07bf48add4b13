"""What ``bench-server --help`` shows of its commands."""

from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

from bench_server.cli.main import main

# Typer's names of types, which say nothing of a value's meaning, and ranges.
NOISE = ("<bool", "<int", "<float", "<str", "<path", "<file", "list[", "x>=", "<=x", " TEXT ")
OPTIONS_OF_WORDS = {"--reason"}


def commands() -> Iterator[tuple[str, ...]]:
    """Every command line that has a ``--help`` of its own."""
    program = typer.main.get_command(main)
    context = program.make_context("bench-server", [], resilient_parsing=True)
    yield ()
    for name in program.list_commands(context):
        yield (name,)
        for subcommand in getattr(program.get_command(context, name), "commands", {}):
            yield name, subcommand


def help_of(*command: str) -> str:
    return CliRunner().invoke(main, [*command, "--help"], env={"COLUMNS": "80"}).stdout


@pytest.mark.parametrize("command", list(commands()), ids=" ".join)
def test_help_names_values_by_what_they_are(command: tuple[str, ...]) -> None:
    lines = help_of(*command).splitlines()
    assert any("--help" in line for line in lines)
    for line in lines:
        if not any(option in line for option in OPTIONS_OF_WORDS):
            assert not [noise for noise in NOISE if noise in line], line


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (("export",), "FILE"),
        (("backup",), "FILE"),
        (("keys", "approve"), "KEY_ID"),
        (("results", "flag"), "RESULT_ID"),
        (("webhooks", "add"), "URL"),
        (("webhooks", "secret"), "WEBHOOK_ID"),
    ],
)
def test_an_argument_is_named_by_what_it_is(command: tuple[str, ...], named: str) -> None:
    assert named in help_of(*command).partition("Arguments")[2].partition("Options")[0].split()


def test_values_are_still_checked() -> None:
    wrong = CliRunner().invoke(main, ["export", "all.csv", "--keep-days", "0"])
    assert (wrong.exit_code, "greater than or equal to 1" in wrong.stderr) == (2, True)
