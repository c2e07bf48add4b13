"""The list of commands that ``--help`` shows without importing any."""

import pytest
from typer.testing import CliRunner

from bench_agent.cli.main import COMMANDS, EXAMPLES, app, load


@pytest.mark.parametrize("name", COMMANDS)
def test_a_listed_command_is_the_one_that_runs(name: str) -> None:
    command = load(name)
    assert command.name == name
    listed = COMMANDS[name][1].removesuffix(".")
    # A command's own help starts with the same words; it may be longer.
    assert command.help.startswith(listed.split(",")[0].split(":")[0])
    assert EXAMPLES[name].startswith(f"bench-agent {name} ")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_a_command_is_one_that_it_takes(name: str) -> None:
    command, words = load(name), EXAMPLES[name].split()[2:]
    if subcommands := getattr(command, "commands", None):
        command, words = subcommands[words[0]], words[1:]
    assert command.make_context(name, words)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_no_types_and_no_ranges(name: str) -> None:
    text = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "80"}).stdout
    for subcommand in getattr(load(name), "commands", {}):
        text += CliRunner().invoke(app, [name, subcommand, "--help"]).stdout
    text += CliRunner().invoke(app, ["--help"]).stdout
    assert "--help" in text
    for noise in ("<bool>", "<int", "<float", "<str", "<path", "list[", "x>=", "<=x"):
        assert noise not in text


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["verify"], "RESULT"),
        (["results", "hide"], "RESULT_ID"),
        (["results", "export"], "FILE"),
        (["data", "fetch"], "NAME"),
        (["environments", "add"], "PATH"),
    ],
)
def test_an_argument_is_named_by_what_it_is(command: list[str], named: str) -> None:
    text = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "80"}).stdout
    panel = text.partition("Arguments")[2]
    assert named in panel.split()


def test_values_are_still_checked() -> None:
    wrong = CliRunner().invoke(app, ["plan", "--batch-size", "0"])
    assert (wrong.exit_code, "greater than or equal to 1" in wrong.stderr) == (2, True)


def test_help_lists_the_names_that_an_option_takes() -> None:
    text = CliRunner().invoke(app, ["plan", "--help"], env={"COLUMNS": "80"}).stdout
    for name in ("resnet50-transfer", "torch", "cuda:all", "pipeline", "mixed_bfloat16"):
        assert name in text
    assert "--repeats" not in CliRunner().invoke(app, ["conformance", "--help"]).stdout
