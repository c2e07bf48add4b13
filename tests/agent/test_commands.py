"""The list of commands that ``--help`` shows without importing any."""

import io
import re
import sys

import pytest
import typer
from typer.testing import CliRunner

from bench_agent.cli.main import COMMANDS, EXAMPLES, GROUPS, PANELS, Commands, app


@pytest.mark.parametrize("name", COMMANDS)
def test_a_listed_command_is_the_one_that_runs(name: str) -> None:
    command = Commands.load(name)
    assert command.name == name
    listed = COMMANDS[name][1].removesuffix(".")
    # A command's own help starts with the same words; it may be longer.
    assert command.help.startswith(listed.split(",")[0].split(":")[0])
    assert EXAMPLES[name].startswith(f"bench-agent {name} ")


def test_help_has_the_commands_in_groups_and_an_example() -> None:
    text = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout
    headings = re.findall("^╭─ ([A-Za-z ]+) ─", text, re.MULTILINE)
    assert headings == ["Options", *GROUPS]
    assert list(PANELS) == list(COMMANDS)
    assert text.rstrip().endswith("bench-agent run --preset smoke --server http://bench.lab:8000")


@pytest.mark.parametrize("name", ["run", "plan", "submit"])
def test_help_says_which_results_can_be_ranked(name: str) -> None:
    text = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"}).stdout
    assert "ranked" in text.partition("Options")[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_a_command_is_one_that_it_takes(name: str) -> None:
    command, words = Commands.load(name), EXAMPLES[name].split()[2:]
    if subcommands := getattr(command, "commands", None):
        command, words = subcommands[words[0]], words[1:]
    assert command.make_context(name, words)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_no_types_and_no_ranges(name: str) -> None:
    text = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "80"}).stdout
    for subcommand in getattr(Commands.load(name), "commands", {}):
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


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("plan --batch-size 0", "--batch-size takes a whole number from 1 on, not '0'"),
        ("plan --batch-size x", "--batch-size takes a whole number from 1 on, not 'x'"),
        ("plan --repeats 5000", "--repeats takes a whole number from 1 to 1,000, not '5000'"),
        ("plan --repeats 1.5", "--repeats takes a whole number from 1 to 1,000, not '1.5'"),
        ("plan --budget-seconds nan", "--budget-seconds takes a number from 0.5 to 86,400, not"),
        ("plan --budget-seconds inf", "--budget-seconds takes a number from 0.5 to 86,400, not"),
        ("run --wait-seconds -1", "--wait-seconds takes a number from 0 to 86,400, not '-1'"),
        ("run --help-others yess", "unknown --help-others 'yess'; did you mean yes?"),
        ("keys shwo", "unknown command 'shwo'; did you mean show? There are: show, rotate"),
        ("plan --wrokload x", "unknown option '--wrokload'; did you mean --workload?"),
        ("plan --colour x", "unknown option '--colour'; bench-agent plan --help lists them"),
        ("plan --framework jax torch", "unexpected 'torch': repeat the option for each of"),
        ("status now", "unexpected 'now': bench-agent status --help shows what it takes"),
        ("plan --preset", "--preset needs a value"),
        ("plan --json=yes", "--json takes no value"),
        ("verify", "RESULT is missing: a result's address, a bundle in a file"),
    ],
)
def test_a_wrong_command_line_ends_in_one_line(line: str, words: str) -> None:
    wrong = CliRunner().invoke(app, line.split(), prog_name="bench-agent")
    assert wrong.exit_code == 2
    assert wrong.stderr.startswith(words)
    assert wrong.stderr.count("\n") == 1
    assert wrong.stdout == ""


def test_a_wrong_command_line_is_red_where_colours_are() -> None:
    wrong = ["plan", "--batch-size", "0"]
    coloured = CliRunner().invoke(app, wrong, env={"FORCE_COLOR": "1", "NO_COLOR": ""}, color=True)
    plain = CliRunner().invoke(app, wrong, env={"FORCE_COLOR": "1", "NO_COLOR": "1"}, color=True)
    assert coloured.stderr.startswith("\x1b[31m--batch-size takes")
    assert "\x1b[3" not in plain.stderr


@pytest.mark.parametrize("name", [None, *COMMANDS])
@pytest.mark.parametrize("columns", [60, 80])
def test_help_breaks_no_word(name: str | None, columns: int) -> None:
    commands = [[] if name is None else [name]]
    commands += [
        [name, subcommand] for subcommand in getattr(name and Commands.load(name), "commands", {})
    ]
    for command in commands:

        def words(width: int, command: list[str] = command) -> set[str]:
            done = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": str(width)})
            assert done.exit_code == 0
            return {word for word in done.stdout.split() if not set(word) & set("─╭╮╰╯")}

        assert words(columns) <= words(200), command


def test_help_lists_the_names_that_an_option_takes() -> None:
    text = CliRunner().invoke(app, ["plan", "--help"], env={"COLUMNS": "80"}).stdout
    for name in ("resnet50-transfer", "torch", "cuda:all", "pipeline", "mixed_bfloat16"):
        assert name in text
    assert "--repeats" not in CliRunner().invoke(app, ["conformance", "--help"]).stdout


@pytest.mark.parametrize("name", ["run", "status"])
def test_an_interrupted_command_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"bench_agent.cli.{COMMANDS[name][0].replace(':', '.')}", interrupted)
    ended = CliRunner().invoke(app, [name])
    assert ended.exit_code == 130
    assert ended.stderr.startswith("Interrupted.")
    assert ("bench-agent run --resume" in ended.stderr) == (name == "run")


@pytest.mark.parametrize(
    ("stopped_by", "code", "words"),
    [(KeyboardInterrupt, 130, "Interrupted."), (EOFError, 1, "Aborted.")],
)
def test_a_question_that_is_not_answered(
    stopped_by: type[BaseException], code: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unanswered(io.StringIO):
        def readline(self, size: int | None = -1, /) -> str:
            raise stopped_by

    def asking() -> None:
        typer.confirm("Send?", err=True)

    monkeypatch.setattr(sys, "stdin", Unanswered())
    monkeypatch.setattr("bench_agent.cli.submit.status", asking)
    monkeypatch.setattr(sys, "argv", ["bench-agent", "status"])
    said: list[str] = []
    monkeypatch.setattr("bench_agent.output.console.complain", said.append)
    with pytest.raises(SystemExit) as left:
        app()
    assert (left.value.code, said) == (code, [words])
