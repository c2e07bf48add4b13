"""The list of commands that ``--help`` shows without importing any."""

import pytest

from bench_agent.cli.main import COMMANDS, EXAMPLES, load


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
